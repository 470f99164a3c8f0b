// Sets the formulas of all pages, then takes away what does not fit: whole blocks from the first that reaches beyond the
// page (or its column) on; a list is kept up to the end of an item, a table up to the end of a row that no cell crosses,
// fields up to the end of a row.
//
// What was kept is told as a tree. A block: 0 (taken away), 1 (whole), or an object: {n} the first n rows of a table or
// of fields; {n, below} the first n items of a list and what was kept of the list below the last one (null: all);
// {columns} a list of blocks for each column. Footnotes are told by their markers: those whose marker and text are both
// on the page are kept.

const SLACK = 0.75; // pixels: rounding of text positions
const LEAST_ROWS = 2; // a table is not cut to fewer rows below its head, and fields not to fewer rows
const MOST_NOTES = 0.4; // footnotes take at most this share of their column's height

function setFormulas() {
  const errors = [];
  for (const element of document.querySelectorAll("[data-tex]")) {
    const latex = element.dataset.tex;
    try {
      const display = element.hasAttribute("data-display");
      katex.render(latex, element, { displayMode: display, output: "html", throwOnError: true, strict: false });
    } catch (error) {
      errors.push({ page: Number(element.closest(".page").dataset.page), latex, message: String(error.message) });
    }
  }
  return errors;
}

function isWide(element, area) {
  const box = element.getBoundingClientRect();
  const inside = element.clientWidth > 0 && element.scrollWidth > element.clientWidth + 1;
  return inside || box.right > area.right + SLACK || box.left < area.left - SLACK;
}

function isLow(element, area) {
  return element.getBoundingClientRect().bottom > area.bottom + SLACK;
}

// Fills a page or column. Blocks that are too wide are skipped; the first that is too low is cut, or ends it.
function fill(container, area) {
  const blocks = [...container.children];
  const notes = blocks.at(-1)?.matches(".notes") ? blocks.at(-1) : null;
  let bottom = area.bottom;
  if (notes) {
    const tall = notes.getBoundingClientRect().height;
    if (tall > MOST_NOTES * (area.bottom - area.top) || isWide(notes, area)) notes.remove();
    else bottom -= tall;
  }
  const texts = notes ? blocks.slice(0, -1) : blocks;
  const kept = stack(texts, { ...area, bottom });
  if (notes) {
    for (const note of notes.querySelectorAll("[data-note]")) {
      if (!container.querySelector(`sup[data-marker="${CSS.escape(note.dataset.note)}"]`)) note.remove();
    }
    if (!notes.querySelector("[data-note]")) notes.remove();
    kept.push(notes.isConnected ? 1 : 0);
  }
  return kept;
}

function stack(blocks, area) {
  const kept = [];
  let full = false;
  for (const block of blocks) {
    let part = 0;
    if (!full && block.matches(".columns")) {
      part = fillColumns(block, area);
      full = part.cut;
      part = part.kept;
    } else if (!full && !isWide(block, area)) {
      part = isLow(block, area) ? cut(block, area) : 1;
      full = part !== 1;
    }
    if (part === 0) block.remove();
    kept.push(part);
  }
  if (full) {
    // A heading above nothing looks like a mistake.
    for (let last = kept.length - 1; last >= 0; last--) {
      if (kept[last] === 0) continue;
      if (!blocks[last].matches(".heading")) break;
      blocks[last].remove();
      kept[last] = 0;
    }
  }
  kept.cut = full;
  return kept;
}

function fillColumns(block, area) {
  const columns = [...block.children].map((column) => {
    const box = column.getBoundingClientRect();
    return fill(column, { left: box.left, right: box.right, top: box.top, bottom: area.bottom });
  });
  const empty = columns.every((kept) => kept.every((part) => part === 0));
  return { kept: empty ? 0 : { columns }, cut: columns.some((kept) => kept.cut) };
}

function cut(block, area) {
  if (block.matches(".list")) return cutList(block, area);
  if (block.matches("table")) return cutTable(block, area);
  if (block.matches(".fields")) return cutFields(block, area);
  return 0;
}

function cutList(list, area) {
  let n = 0;
  let below = null;
  let full = false;
  for (const item of [...list.children]) {
    const content = item.querySelector(":scope > .words");
    if (full || isLow(content, area)) {
      full = true;
      item.remove();
      continue;
    }
    n += 1;
    const inner = item.querySelector(":scope > .list");
    if (inner && isLow(inner, area)) {
      below = cutList(inner, area);
      if (below === 0) inner.remove();
      full = true;
    }
  }
  return n === 0 ? 0 : { n, below };
}

function cutTable(table, area) {
  const rows = [...table.rows];
  let n = 0;
  let reach = 0;
  let body = 0;
  for (let end = 1; end < rows.length; end++) {
    const cells = [...rows[end - 1].cells];
    for (const cell of cells) reach = Math.max(reach, end - 1 + cell.rowSpan);
    if (cells.some((cell) => cell.tagName === "TD")) body += 1;
    // A pixel or two for the line below the last row.
    const low = rows[end - 1].getBoundingClientRect().bottom + 2 > area.bottom;
    if (!low && reach <= end && body >= LEAST_ROWS) n = end;
  }
  for (const row of rows.slice(n)) row.remove();
  return n === 0 ? 0 : { n };
}

function cutFields(block, area) {
  const parts = [...block.querySelectorAll("[data-row]")];
  const bottoms = new Map();
  for (const part of parts) {
    const row = Number(part.dataset.row);
    bottoms.set(row, Math.max(bottoms.get(row) ?? 0, part.getBoundingClientRect().bottom));
  }
  let n = 0;
  while (bottoms.get(n) + 2 <= area.bottom) n += 1;
  if (n < Math.min(LEAST_ROWS, bottoms.size)) return 0;
  for (const part of parts) if (Number(part.dataset.row) >= n) part.remove();
  return { n };
}

function boxes(page) {
  const origin = page.getBoundingClientRect();
  return [...page.querySelectorAll("[data-block]:not(.columns)")].map((block) => {
    const box = block.getBoundingClientRect();
    return [box.left - origin.left, box.top - origin.top, box.right - origin.left, box.bottom - origin.top];
  });
}

async function layOut() {
  const errors = setFormulas();
  if (errors.length > 0) return { errors, missing: [] };
  document.body.getBoundingClientRect(); // asks for the fonts
  await document.fonts.ready;
  const missing = [...document.fonts].filter((font) => font.status === "error").map((font) => font.family);
  if (missing.length > 0) return { errors, missing };
  return { errors, missing, pages: [...document.querySelectorAll(".page")].map(layOutPage) };
}

function layOutPage(page) {
  const content = page.querySelector(".content");
  const { left, top, right, bottom } = content.getBoundingClientRect();
  const kept = fill(content, { left, top, right, bottom });
  const notes = [...content.querySelectorAll("[data-note]")].map((note) => note.dataset.note);
  for (const marker of content.querySelectorAll("sup[data-marker]")) {
    if (!notes.includes(marker.dataset.marker)) marker.remove();
  }
  return { kept, notes, boxes: boxes(page) };
}
