"""The one script that a page may have: it sorts tables, and shows the values of points of pictures.

It is a constant: nothing of a page's data is ever part of it, and a page names its SHA-256, so that a browser runs this
text and no other. What it shows is text of the page; it loads nothing, and the policy of the page would not let it.
"""

from __future__ import annotations

import base64
import hashlib

SORTABLE, HOVERED = 'class="sortable"', 'class="points"'  # marks of what it is for; data cannot hold them unescaped

SCRIPT = """
"use strict";
(() => {
  const NEAR = 16;  // pixels from the edge of a point to a pointer that is still on it
  const element = (name, parent, kind) => {
    const made = parent.appendChild(document.createElement(name));
    made.className = kind;
    return made;
  };

  // --- tables: a click on a head sorts up, then down, then as before; numbers come before words, and no value last
  const rank = (cell) => (cell.dataset.value === "" ? 2 : cell.dataset.value === undefined ? 1 : 0);
  const compare = (a, b, sign) => {
    if (rank(a) !== rank(b) || rank(a) === 2) return rank(a) - rank(b);
    if (rank(a) === 1) return sign * a.textContent.localeCompare(b.textContent);
    const [x, y] = [Number(a.dataset.value), Number(b.dataset.value)];
    return sign * (x < y ? -1 : x > y ? 1 : 0);
  };
  const next = { none: "ascending", ascending: "descending", descending: "none" };
  for (const table of document.querySelectorAll("table.sortable")) {
    const body = table.tBodies[0];
    const given = Array.from(body.rows);
    const heads = Array.from(table.tHead.rows[0].cells);
    heads.forEach((head, i) => {
      const text = head.textContent;
      head.textContent = "";
      const button = element("button", head, "sort");
      button.type = "button";
      button.textContent = text;
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = next[head.getAttribute("aria-sort")];
        for (const x of heads) x.setAttribute("aria-sort", x === head ? order : "none");
        const sign = order === "descending" ? -1 : 1;
        const sorted = given.slice();
        if (order !== "none") sorted.sort((a, b) => compare(a.cells[i], b.cells[i], sign));
        body.append(...sorted);
      });
    });
  }

  // --- pictures: the point that is next to the pointer, or that arrow keys have reached, has its values beside it
  for (const svg of document.querySelectorAll("svg.points")) {
    const lines = Array.from(svg.children, (line) => Array.from(line.children));
    const texts = new Map();
    for (const point of lines.flat()) {
      const title = point.firstElementChild;
      texts.set(point, title.textContent);
      title.remove();
    }
    const x = (point) => point.cx.baseVal.value;
    const y = (point) => point.cy.baseVal.value;
    const units = () => {  // of the drawing in a pixel: one, where it has no proportions of its own
      const inside = svg.viewBox.baseVal;
      return inside && inside.width ? inside.width / svg.getBoundingClientRect().width : 1;
    };
    const tip = element("div", svg.parentNode, "tip");
    tip.setAttribute("role", "status");
    tip.hidden = true;
    let shown = null;
    const show = (point) => {
      if (shown) shown.classList.remove("on");
      shown = point;
      tip.hidden = !point;
      if (!point) return;
      point.classList.add("on");
      tip.textContent = texts.get(point);
      const box = svg.getBoundingClientRect();
      const frame = svg.parentNode.getBoundingClientRect();
      const scale = 1 / units();
      const left = box.left - frame.left + scale * x(point) - tip.offsetWidth / 2;
      const top = box.top - frame.top + scale * y(point);
      tip.style.left = Math.max(0, Math.min(left, frame.width - tip.offsetWidth)) + "px";
      tip.style.top = (top > tip.offsetHeight + 12 ? top - tip.offsetHeight - 12 : top + 12) + "px";
    };
    const nearest = (points, px, py) => {
      let best = null;
      let least = Infinity;
      for (const point of points) {
        const far = Math.hypot(x(point) - px, y(point) - py) - point.r.baseVal.value;
        if (far < least) [best, least] = [point, far];
      }
      return [best, least];
    };
    const follow = (event) => {
      const box = svg.getBoundingClientRect();
      const scale = units();
      const [point, far] = nearest(
        texts.keys(), (event.clientX - box.left) * scale, (event.clientY - box.top) * scale);
      show(far <= NEAR * scale ? point : null);
    };
    svg.addEventListener("pointermove", follow);
    svg.addEventListener("pointerdown", follow);
    svg.addEventListener("pointerleave", () => show(null));
    svg.addEventListener("blur", () => show(null));
    svg.addEventListener("keydown", (event) => {
      const along = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
      const across = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (event.key === "Escape") return show(null);
      if (!along && !across) return undefined;
      event.preventDefault();
      if (!shown) return show(lines[0][0]);
      const k = lines.findIndex((line) => line.includes(shown));
      if (along) return show(lines[k][lines[k].indexOf(shown) + along] || shown);
      return show(lines[k + across] ? nearest(lines[k + across], x(shown), y(shown))[0] : shown);
    });
    svg.tabIndex = 0;
  }
})();
"""

_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode()).digest()).decode()
NOTHING = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"  # nothing from elsewhere, and no script
POLICY = f"{NOTHING}; script-src 'sha256-{_HASH}'"  # this script and no other


def has_use(text: str) -> bool:
    """Tell whether a page has tables to sort, or points with values."""
    return SORTABLE in text or HOVERED in text
