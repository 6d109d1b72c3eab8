// Mends of the theme's pages that no setting reaches. Runs deferred, when the page has been parsed.
"use strict";

// --- for screen readers and keyboards ---------------------------------------------------------------
{
  const all = (selector, mend) => document.querySelectorAll(selector).forEach(mend);

  // The name of what can be pressed must hold the words it shows.
  all(".search-button-field, details.hide > summary", (element) => element.removeAttribute("aria-label"));
  all(".theme-switch-button .theme-switch", (icon) => {
    icon.removeAttribute("title");
    icon.removeAttribute("role");
    icon.setAttribute("aria-hidden", "true");
    icon.querySelector("title")?.remove();
  });

  // A page with pages below it has a button that shows an icon alone.
  all(".toctree-l1 > details > summary", (button) => {
    const page = button.closest("li").querySelector("a").textContent.trim();
    button.setAttribute("aria-label", `Pages of ${page}`);
  });

  // The book's title lies outside every landmark.
  all(".sidebar-primary-item:has(> .navbar-brand)", (item) => {
    item.setAttribute("role", "navigation");
    item.setAttribute("aria-label", "Home");
  });

  // A list of works needs items; docutils gives them a role that ARIA has dropped.
  all(".citation-list > .citation", (entry) => entry.setAttribute("role", "listitem"));

  // A formula wider than its column scrolls, so the keyboard must reach it. (A pixel is rounding.)
  const reachFormulas = () =>
    all("mjx-container[display='true'], span.math", (formula) => {
      if (formula.scrollWidth > formula.clientWidth + 1) formula.setAttribute("tabindex", "0");
      else formula.removeAttribute("tabindex");
    });
  window.MathJax?.startup?.promise?.then(reachFormulas);
  document.addEventListener("toggle", reachFormulas, true); // what was folded had no width
  addEventListener("resize", reachFormulas);
}

// --- print: what is folded on the screen is open on paper ---------------------------------------------
{
  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("details:not([open])")];
    for (const details of opened) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of opened) details.open = false;
  });
}
