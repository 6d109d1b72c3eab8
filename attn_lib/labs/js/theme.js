// Light or dark, as the book (Sphinx), JupyterLab, VS Code, Colab or the system says.

const system = () => matchMedia("(prefers-color-scheme: dark)");

/** "light" or "dark", now. */
export function theme() {
  const { documentElement: html, body } = document;
  const named = html.dataset.theme ?? html.getAttribute("theme");
  if (named === "dark" || named === "light") return named;
  const jupyter = body?.dataset.jpThemeLight;
  if (jupyter) return jupyter === "true" ? "light" : "dark";
  const code = body?.dataset.vscodeThemeKind;
  if (code) return code.includes("dark") ? "dark" : "light";
  return system().matches ? "dark" : "light";
}

/** Call `changed` whenever the theme may have changed, until `signal` aborts. */
export function onTheme(changed, signal) {
  const observer = new MutationObserver(changed);
  for (const element of [document.documentElement, document.body])
    observer.observe(element, {
      attributeFilter: ["data-theme", "theme", "data-jp-theme-light", "data-vscode-theme-kind"],
    });
  system().addEventListener("change", changed, { signal });
  signal.addEventListener("abort", () => observer.disconnect());
}
