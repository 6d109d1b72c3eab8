// Everything a lab shows, in one round trip, two frames after the last change.
async (figure) => {
  for (let k = 0; k < 2; k++) await new Promise(requestAnimationFrame);
  const all = (selector, root = figure) => [...root.querySelectorAll(selector)];
  const text = (element) => element.textContent;

  const panel = (name) => {
    const [table] = all(`table[data-panel="${name}"]`);
    const value = (row) => (td, col) =>
      td.dataset.row === String(row) && td.dataset.col === String(col)
        ? td.dataset.value
        : `misplaced in ${name}: row ${td.dataset.row}, column ${td.dataset.col}`;
    const rows = all("tbody tr", table).map((tr) => all("td", tr));
    return {
      cols: all('thead th[scope="col"]', table).map(text),
      rows: all('tbody th[scope="row"]', table).map(text),
      values: rows.map((cells, row) => cells.map(value(row)).join(";")),
      texts: rows.map((cells) => cells.map(text)),
    };
  };

  const control = (input) => ({
    value: input.type === "checkbox" ? input.checked : input.value,
    disabled: input.disabled,
    hidden: !input.checkVisibility(),
  });

  return {
    scores: panel("scores"),
    weights: panel("weights"),
    output: panel("output"),
    controls: Object.fromEntries(
      all("[data-control]:is(input, select)").map((input) => [input.dataset.control, control(input)]),
    ),
    order: all('[data-control="order"] [data-token]').map((item) => Number(item.dataset.token)),
    pressed: all('[data-control="order"] [aria-pressed="true"]').map(text),
    current: all('[data-panel="weights"] .attn-current').map((row) => row.sectionRowIndex),
    sum: all(".attn-sum :is(tbody, tfoot) tr").map((row) => [...row.cells].map(text)),
    meters: all(".attn-meters b").map(text),
    spoken: all("[aria-live=polite]").map(text).join(),
    notice: all(".attn-notice").map(text).join(),
  };
};
