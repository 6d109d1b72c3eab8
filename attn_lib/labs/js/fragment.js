// A lab's state in a URL fragment, "#name?d_k=64&order=2,0,1". What comes in is anybody's text.

/** Split a fragment into the lab's name and its raw fields; null when it addresses no lab. */
export function parseFragment(hash) {
  const [name, query = ""] = hash.replace(/^#/, "").split(/\?(.*)/s);
  try {
    return name ? { name: decodeURIComponent(name), fields: [...new URLSearchParams(query)] } : null;
  } catch {
    return null; // a stray % in somebody else's fragment
  }
}

/** The fragment that says `state` where it differs from `initial`. */
export function formatFragment(name, state, initial) {
  const fields = Object.keys(state)
    .filter((key) => String(state[key]) !== String(initial[key]))
    .map((key) => `${key}=${encodeURIComponent(state[key] ?? "").replaceAll("%2C", ",")}`);
  return `#${encodeURIComponent(name)}${fields.length ? `?${fields.join("&")}` : ""}`;
}
