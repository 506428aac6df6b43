"""Open every page of a built site in Chromium, light and dark, offline: no errors, nothing too wide, search works.

python -m benchmarks.site.browser SITE SCREENSHOTS
"""

import functools
import http.server
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.common.by import By
from selenium.webdriver.support.wait import WebDriverWait

WIDTHS = 400, 1000, 1600
MODES = "light", "dark"
HEIGHT = 1200
SHOWN = (
    "index",
    "pages/tutorials/a_moving_average",
    "pages/tutorials/b_answer_for_a_log",
    "pages/tutorials/c_research",
    "choosing/which-mechanism",
    "pages/gallery/plot_01_the_idea",
    "pages/gallery/plot_03_optimum_and_two_steps",
    "pages/gallery/plot_09_counters",
    "reference/objects/dpfast.optimal",
    "measurements/example",
)
WIDER = """
const root = document.documentElement, page = root.clientWidth;
const wider = [...document.querySelectorAll('article table, article img, article pre')]
  .filter(x => x.getBoundingClientRect().right > page + 1).map(x => x.tagName + ' ' + (x.id || x.alt || x.className));
return root.scrollWidth > page ? ['what it holds', ...wider] : wider;
"""
WORN = "return document.documentElement.dataset.theme"
SEARCHED = "block sums"
SECONDS = 20


class Quiet(http.server.SimpleHTTPRequestHandler):
    """A server of files that says nothing."""

    def log_message(self, *_):
        """Say nothing."""


def serve(folder):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(folder)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return f"http://127.0.0.1:{server.server_port}"


def browser():
    options = webdriver.ChromeOptions()
    for option in ("--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage"):
        options.add_argument(option)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    return webdriver.Chrome(options=options, service=webdriver.ChromeService("/usr/bin/chromedriver"))


def resize(driver, width):
    """Also below the least width of a window."""
    size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)


def prefer(driver, mode):
    """Let pages know that who reads prefers them light, or dark."""
    features = [{"name": "prefers-color-scheme", "value": mode}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": features})


def errors(driver):
    """What the page has complained of since the last time."""
    return [x["message"] for x in driver.get_log("browser") if x["level"] == "SEVERE"]


def look(driver, address, name, mode):
    """Problems of one page at all widths."""
    driver.get(f"{address}/{name}.html")
    worn = driver.execute_script(WORN)
    problems = [] if worn == mode else [f"{name}: it is {worn} where {mode} is preferred"]
    for width in WIDTHS:
        resize(driver, width)
        wider = driver.execute_script(WIDER)
        problems += [f"{name}, {mode}, at {width}: {x} is wider than the page" for x in wider]
    return problems + [f"{name}, {mode}: {x}" for x in errors(driver)]


def search(driver, address):
    resize(driver, 1000)
    driver.get(f"{address}/search.html?q={SEARCHED.replace(' ', '+')}")
    WebDriverWait(driver, SECONDS).until(lambda x: x.find_elements(By.CSS_SELECTOR, "ul.search li a"))
    found = [x.get_attribute("href") for x in driver.find_elements(By.CSS_SELECTOR, "ul.search li a")]
    return [] if any("block" in x for x in found) else [f"search finds no page on {SEARCHED}: {found[:5]}"]


def photograph(driver, address, folder, mode):
    """Take pictures of some pages as they are preferred now."""
    resize(driver, 1000)
    for name in SHOWN:
        driver.get(f"{address}/{name}.html")
        driver.save_screenshot(str(folder / f"{name.replace('/', '-')}-{mode}.png"))


def visit(address, names, folder, mode):
    """Problems of all pages as they are preferred, with a browser of its own; those of some are shown."""
    driver = browser()
    try:
        prefer(driver, mode)
        problems = [x for name in names for x in look(driver, address, name, mode)]
        photograph(driver, address, folder, mode)
        return problems + search(driver, address)
    finally:
        driver.quit()


def main(site, screenshots):
    site, folder = Path(site), Path(screenshots)
    folder.mkdir(parents=True, exist_ok=True)
    names = sorted(str(x.relative_to(site).with_suffix("")) for x in site.rglob("*.html"))
    names = [x for x in names if x not in {"search", "genindex", "webpack-macros"} and not x.startswith("_")]
    address = serve(site)
    problems = [f"{x} is no page, and was to be shown" for x in SHOWN if x not in names]
    with ThreadPoolExecutor(len(MODES)) as pool:  # a processor each
        for found in pool.map(lambda mode: visit(address, names, folder, mode), MODES):
            problems += found
    print(*problems, sep="\n")
    shown = f"{len(MODES) * len(SHOWN)} screenshots in {folder}"
    print(f"{len(names)} pages at {WIDTHS}, {' and '.join(MODES)}, {len(problems)} problems; {shown}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
