// Everything a lab shows, in one round trip, when its last change has been drawn.
async (figure) => {
  const busy = () => figure.querySelector("[aria-busy=true]");
  for (let k = 0; k < 3 || busy(); k++) await new Promise(requestAnimationFrame);
  const all = (selector, root = figure) => [...root.querySelectorAll(selector)];
  const text = (element) => element.textContent;
  const texts = (selector) => all(selector).map(text);
  const within = (element) => element.closest(".attn-live") !== null;

  // as text: JSON knows neither −∞ nor NaN
  const value = (cell) => (cell && "value" in cell.dataset ? cell.dataset.value : "NaN");
  const panel = (table) => {
    const rows = all("tbody tr", table).map((tr) => all("td[data-row]", tr));
    rows.forEach((cells, row) =>
      cells.forEach(({ dataset }, col) => {
        if (dataset.row !== String(row) || dataset.col !== String(col))
          throw new Error(`misplaced in ${table.dataset.panel}: ${dataset.row}, ${dataset.col}`);
      }),
    );
    return {
      rows: all('tbody th[scope="row"]', table).map(text),
      cols: all('thead th[scope="col"]', table).map(text),
      heads: all("tbody tr", table).map((tr) => value(tr.querySelector("th"))),
      values: rows.map((cells) => cells.map(value)),
      texts: rows.map((cells) => cells.map(text)),
      kinds: rows.map((cells) => cells.map(({ className }) => className.replace("attn-", ""))),
      current: all("tr.attn-current", table).map(({ sectionRowIndex }) => sectionRowIndex),
      boxes: all(".attn-box", table).map(({ style }) =>
        ["row", "col", "high", "wide"].map((name) => Number(style.getPropertyValue(`--${name}`))),
      ),
      words: all(".attn-word", table).map(text),
      total: all("tfoot td[data-value]", table).map(value),
      seen: table.checkVisibility(),
    };
  };
  // a table is named by its panel, and by its head if there are several
  const named = (table) => [table.dataset.panel, table.dataset.head].filter((part) => part !== undefined).join(" ");

  const inputs = all("[data-control]:is(input, select)");
  const names = (found) => found.map(({ dataset }) => dataset.control);
  const picture = (svg) => ({
    label: svg.getAttribute("aria-label"),
    width: svg.getBoundingClientRect().width,
    texts: all("text", svg).map(text),
    marks: all("path, circle, line", svg)
      .flatMap((mark) => [...mark.attributes].map((given) => given.value))
      .join(" "),
  });

  return {
    panels: Object.fromEntries(
      all("table[data-panel]")
        .filter(within)
        .map((table) => [named(table), panel(table)]),
    ),
    controls: Object.fromEntries(
      inputs.map((input) => [input.dataset.control, input.type === "checkbox" ? input.checked : input.value]),
    ),
    disabled: names(inputs.filter((input) => input.disabled)),
    hidden: names(inputs.filter((input) => !input.checkVisibility())),
    order: all('[data-control="order"] [data-token]').map(({ dataset }) => Number(dataset.token)),
    pressed: texts('[data-control="order"] [aria-pressed="true"]'),
    sum: all(".attn-sum :is(tbody, tfoot) tr").map((row) => [...row.cells].map(text)),
    meters: texts(".attn-meters b"),
    pictures: all("svg.attn-chart").map(picture),
    words: figure.querySelector(".attn-live").innerText,
    spoken: texts("[aria-live=polite]").join(),
    notice: texts(".attn-notice").join(),
  };
};
