// What is there without an import: the labs that build.mjs finds, and the page's MathJax.
declare module "labs" {
  export const labs: Record<string, (parts: object) => { apply: Function; stop: Function }>;
}

interface Window {
  MathJax?: any;
}
