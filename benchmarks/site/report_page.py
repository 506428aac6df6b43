"""Try the script of report pages in Chromium: sorting, values of points by pointer and keys, and that no other runs.

python -m benchmarks.site.report_page SCREENSHOTS
"""

import sys
import tempfile
from pathlib import Path

import numpy as np
from selenium.webdriver import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from benchmarks.site.browser import browser, errors, resize, serve
from dpfast._support.html_fragments import Html
from dpfast._support.text_table import Table
from dpfast.reports import html_page
from dpfast.reports.matplotlib_helpers import make_figure, plot_lines
from dpfast.reports.mechanism_styles import choose_styles
from dpfast.reports.release import estimate_chart
from dpfast.reports.release.chart_axes import step_ticks
from dpfast.reports.release.estimate_chart import GroupPanel

ROWS = (("b", 1e-7, "10"), ("a", 20.0, "smoother"), ("d", None, "2"), ("c", 3.0, "0"))
UP, DOWN = [0, 3, 1, 2], [1, 3, 0, 2]  # of the figures; what has none is last
LAGS = [3, 2, 0, 1]  # in order, the smoother last
ESTIMATES = {"EWR": [0.0, 1.0, 4.0], "LGA": [-1.0, 0.5, 0.25]}
CURVES = {"LMMSE": [3.0, 2.0, 1.5], "optimal": [2.5, 1.75, 1.25]}


def write_page(path):
    """A page of a table and a picture, with a script that must not run."""
    drawn, axes = make_figure(1)
    plot_lines(axes[0, 0], [1, 2, 3], CURVES, choose_styles(list(CURVES)))
    axes[0, 0].set(xlabel="lag", ylabel="RMSE")
    parts = [
        html_page.table(Table(("mechanism", "RMSE", "lag"), ROWS), "errors", where="x.csv"),
        html_page.picture(drawn, "errors over the lag"),
        Html(
            "<script>document.title = 'injected'</script><img alt='' src='x' onerror=\"document.title = 'injected'\">"
        ),
    ]
    path.write_text(html_page.page("A report", {"All": parts}), encoding="utf-8")


def order(driver):
    """Which of the rows stand where."""
    names = [x.text for x in driver.find_elements(By.CSS_SELECTOR, "tbody th")]
    return [[x[0] for x in ROWS].index(name) for name in names]


def sort_problems(driver):
    """Click on heads, and press a key on one."""
    problems, given = [], list(range(len(ROWS)))
    heads = driver.find_elements(By.CSS_SELECTOR, "thead button")
    for k, wanted, said in ((1, UP, "ascending"), (1, DOWN, "descending"), (1, given, "none"), (2, LAGS, "ascending")):
        heads[k].click()
        heard = driver.find_elements(By.CSS_SELECTOR, "thead th")[k].get_attribute("aria-sort")
        if (order(driver), heard) != (wanted, said):
            problems.append(f"head {k}: rows {order(driver)} and {heard}, not {wanted} and {said}")
    heads[0].send_keys(Keys.ENTER)
    if order(driver) != [1, 0, 3, 2]:
        problems.append(f"Enter on the first head: rows {order(driver)}")
    return problems


def tip(driver):
    """What is shown beside a point."""
    return driver.find_element(By.CSS_SELECTOR, ".tip").text


def hover_problems(driver, folder):
    """Point at a value, and go to others by keys."""
    drawing = driver.find_element(By.CSS_SELECTOR, "svg.points")
    circles = driver.find_elements(By.CSS_SELECTOR, "svg.points circle")
    if len(circles) != sum(map(len, CURVES.values())):
        return [f"{len(circles)} points"]
    found = {}
    ActionChains(driver).move_to_element_with_offset(circles[1], 5, 4).perform()
    found["pointer"] = tip(driver), "LMMSE: lag 2, RMSE 2"
    driver.save_screenshot(str(folder / "report-page.png"))
    ActionChains(driver).move_to_element(driver.find_element(By.TAG_NAME, "h1")).perform()
    found["away"] = tip(driver), ""
    driver.execute_script("arguments[0].focus()", drawing)
    keys = (Keys.ARROW_RIGHT, "LMMSE: lag 1, RMSE 3"), (Keys.ARROW_RIGHT, "LMMSE: lag 2, RMSE 2")
    keys += (Keys.ARROW_DOWN, "optimal: lag 2, RMSE 1.75"), (Keys.ARROW_LEFT, "optimal: lag 1, RMSE 2.5")
    for key, wanted in (*keys, (Keys.ESCAPE, "")):
        ActionChains(driver).send_keys(key).perform()
        found[wanted or "Escape"] = tip(driver), wanted
    return [f"{name}: {said!r} and not {wanted!r}" for name, (said, wanted) in found.items() if said != wanted]


def write_chart(path):
    """A page of the estimates of two groups, as that of a release has them."""
    groups = [GroupPanel(name, np.array(x), 1.25) for name, x in ESTIMATES.items()]
    drawn = estimate_chart.draw_panels(groups, step_ticks(0, 3), "step {}".format)
    path.write_text(html_page.page("A release", {"All": [drawn]}, style=estimate_chart.STYLE), encoding="utf-8")


def chart_problems(driver):
    """Point at estimates, on a wide screen and on a narrow one, to which curves are stretched and points are not."""
    problems, wanted = [], [f"step {i}: {x:g} ± 1.25" for values in ESTIMATES.values() for i, x in enumerate(values)]
    for width in (1000, 400):
        resize(driver, width)
        found = []
        for circle in driver.find_elements(By.CSS_SELECTOR, "svg.points circle"):
            ActionChains(driver).move_to_element_with_offset(circle, 5, 4).perform()
            found += [x.text for x in driver.find_elements(By.CSS_SELECTOR, ".tip") if x.text]
        if found != wanted:
            problems.append(f"estimates at {width} pixels: {found} and not {wanted}")
    return problems


def main(screenshots):
    folder = Path(screenshots)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as made:
        write_page(Path(made, "report.html"))
        write_chart(Path(made, "chart.html"))
        driver = browser()
        try:
            address = serve(made)
            driver.get(f"{address}/report.html")
            resize(driver, 1000)
            refused = [x for x in errors(driver) if "Content Security Policy" in x]
            problems = sort_problems(driver) + hover_problems(driver, folder)
            injected = driver.title != "A report" or len(refused) < 3
            driver.get(f"{address}/chart.html")
            problems += chart_problems(driver)
        finally:
            driver.quit()
    problems += [f"what was injected was not refused three times: {refused}"] if injected else []
    print(*problems, f"The script of report pages: {len(problems)} problems", sep="\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
