// Every table of a page: sort it by a column, download it as CSV. Needs nothing, also works from a file.
(() => {
  "use strict";
  // A first number with its sign; digits in groups of three, decimals, an exponent.
  const NUMBER = /(?:(?<![\w)\]])[-\u2212]\s?)?(?:\d{1,3}(?:[\u00a0\u202f,]\d{3})+|\d+)(?:\.\d+)?(?:e[-+]?\d+)?/i;
  // What may stand before it in a column of numbers: signs, and a word such as "about" or "hint:".
  const LEADING = /^(?:about\s|\p{L}+:\s)?[^\p{L}\d]*\d/u;
  const ORDERS = ["ascending", "descending", null];

  /** The TeX of an equation that MathJax has set, which has no text of its own; noted for its copies. */
  function tex(container) {
    const list = window.MathJax?.startup?.document?.math ?? [];
    container.dataset.tex ??= [...list].find((item) => item.typesetRoot === container)?.math ?? "";
    return container.dataset.tex;
  }

  /** What a cell shows, as one line. */
  function text(cell) {
    const copy = cell.cloneNode(true);
    const set = cell.querySelectorAll("mjx-container");
    copy.querySelectorAll("mjx-container").forEach((node, i) => node.replaceWith(tex(set[i])));
    copy.querySelectorAll(".headerlink").forEach((node) => node.remove());
    return copy.textContent.replace(/[ \t\r\n]+/g, " ").trim();
  }

  /** The first number of a cell; NaN where something else comes first, such as "missing (0 of 3)". */
  function number(shown) {
    const found = LEADING.test(shown) ? NUMBER.exec(shown) : null;
    return found ? parseFloat(found[0].replace(/[\s\u00a0\u202f,]/g, "").replace("\u2212", "-")) : NaN;
  }

  /** Rows and columns as they are seen: a cell that spans several places stands in each of them. */
  function grid(rows) {
    const seen = [...rows].map(() => []);
    [...rows].forEach((row, i) => {
      let j = 0;
      for (const cell of row.cells) {
        while (seen[i][j]) j += 1;
        for (let down = 0; down < (cell.rowSpan || rows.length) && i + down < rows.length; down += 1) {
          for (let right = 0; right < cell.colSpan; right += 1) seen[i + down][j + right] = cell;
        }
        j += cell.colSpan;
      }
    });
    return seen;
  }

  /** A copy of the body in which no cell spans rows, so that each row can move by itself. */
  function separate(body) {
    body.querySelectorAll("mjx-container").forEach(tex);
    const copy = body.cloneNode(true);
    const seen = grid(copy.rows);
    const own = seen.map((cells, i) => [...new Set(cells)].map((cell) => {
      if (cell.parentNode === copy.rows[i]) return cell;
      const repeated = cell.cloneNode(true);
      repeated.removeAttribute("id");
      return repeated;
    }));
    [...copy.rows].forEach((row, i) => row.replaceChildren(...own[i]));
    copy.querySelectorAll("[rowspan]").forEach((cell) => cell.removeAttribute("rowspan"));
    return copy;
  }

  /** The places of rows in the order of their cells: what is no number, or empty, comes last. */
  function order(shown, direction) {
    const filled = shown.filter((cell) => cell !== "");
    const numeric = filled.filter((cell) => LEADING.test(cell)).length * 2 >= filled.length;
    const keys = shown.map((cell) => (numeric ? number(cell) : cell));
    const empty = (key) => key === "" || Number.isNaN(key);
    const sign = direction === "ascending" ? 1 : -1;
    const compare = (a, b) => (numeric ? a - b : a.localeCompare(b, "en", { numeric: true }));
    return keys.map((_, i) => i).sort((a, b) => {
      if (empty(keys[a]) || empty(keys[b])) return empty(keys[a]) - empty(keys[b]) || a - b;
      return sign * compare(keys[a], keys[b]) || a - b;
    });
  }

  function makeSortable(table, heads) {
    const original = table.tBodies[0];
    let free = null; // made by the first sorting
    const width = Math.max(0, ...heads.map((row) => row.length));
    for (let column = 0; column < width; column += 1) {
      const above = [...new Set(heads.map((row) => row[column]))].filter((cell) => cell?.colSpan === 1);
      const head = above.findLast((cell) => text(cell)) ?? above.at(-1);
      if (!head || head.querySelector("button")) continue;
      const button = document.createElement("button");
      const place = head.querySelector(":scope > p") ?? head;
      button.type = "button";
      button.className = "sort";
      if (!text(head) || head.querySelector("a, .math, mjx-container")) {
        button.setAttribute("aria-label", `Sort by ${text(head) || `column ${column + 1}`}`);
        place.append(button); // a link or an equation can be reached by keyboard itself
      } else {
        button.append(...place.childNodes);
        place.append(button);
      }
      head.classList.add("sortable");
      head.classList.toggle("short", text(head).length < 15); // not broken into lines
      head.addEventListener("click", (event) => {
        if (event.target.closest("a")) return;
        const next = ORDERS[(ORDERS.indexOf(head.getAttribute("aria-sort")) + 1) % 3];
        table.querySelectorAll("th[aria-sort]").forEach((other) => other.removeAttribute("aria-sort"));
        free ??= separate(original);
        if (next) {
          head.setAttribute("aria-sort", next);
          const rows = [...separate(original).rows];
          const shown = grid(rows).map((cells) => (cells[column] ? text(cells[column]) : ""));
          free.replaceChildren(...order(shown, next).map((i) => rows[i]));
        }
        table.tBodies[0].replaceWith(next ? free : original);
      });
    }
  }

  /** The table as it stands, in the order that is shown; header rows become one. */
  function csv(table, heads) {
    const width = Math.max(0, ...heads.map((row) => row.length));
    const names = [...Array(width).keys()].map((column) => {
      const above = [...new Set(heads.map((row) => row[column]).filter(Boolean))];
      return above.map(text).filter(Boolean).join(" / ");
    });
    const body = [...table.tBodies].flatMap((part) => grid(part.rows));
    const lines = [...(width ? [names] : []), ...body.map((cells) => cells.map(text))];
    const quoted = (value) => (/[",\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
    return lines.map((line) => line.map(quoted).join(",") + "\r\n").join("");
  }

  function addDownload(table, heads, name) {
    const button = document.createElement("button");
    button.type = "button";
    button.className = "csv";
    button.textContent = "CSV";
    button.title = "Download this table as CSV";
    button.setAttribute("aria-label", `CSV: download ${table.caption ? text(table.caption) : name}`);
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      // the mark of the byte order tells spreadsheets that this is UTF-8
      link.href = URL.createObjectURL(new Blob(["\ufeff", csv(table, heads)], { type: "text/csv;charset=utf-8" }));
      link.download = `${name}.csv`;
      link.click();
      URL.revokeObjectURL(link.href);
    });
    const scrolls = table.closest(".pst-scrollable-table-container, .cell_output > .output");
    (scrolls ?? table).after(button);
  }

  document.addEventListener("DOMContentLoaded", () => {
    const page = location.pathname.split("/").at(-1).replace(/\.html$/, "");
    document.querySelectorAll(".bd-article table").forEach((table, i) => {
      if (!table.tBodies.length) return;
      const heads = grid(table.tHead?.rows ?? []);
      if (table.tBodies.length === 1 && table.tBodies[0].rows.length > 1) makeSortable(table, heads);
      addDownload(table, heads, `${page}-${i + 1}`);
    });
  });
})();
