// Keys, and a look at what changed while the tab is seen. Everything works without it.
"use strict";

const typing = () => document.activeElement?.matches("input, textarea, select");
const cards = () => [...document.querySelectorAll("[data-card]")];

function go(step) {
  const all = cards(), at = all.findIndex((each) => each.contains(document.activeElement));
  const next = all[Math.min(all.length - 1, Math.max(0, at < 0 ? 0 : at + step))];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function act(key) {
  const card = document.activeElement?.closest("[data-card]") ?? cards()[0];
  const found = card?.querySelector(`[data-do="${key}"]`);
  if (found?.matches("select")) found.focus();
  else found?.click();
  return Boolean(found);
}

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape" && typing()) { document.activeElement.blur(); return; }
  if (typing() || event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.key === "/") { event.preventDefault(); find(); }
  else if (event.key === "j" || event.key === "k") go(event.key === "j" ? 1 : -1);
  else if (act(event.key)) event.preventDefault();
  else document.querySelector(`[data-key="${CSS.escape(event.key)}"]`)?.click();
});

function find() {
  const box = document.querySelector("[data-find]");
  if (box) box.focus(); else location.assign("/memories#q");
}

// A link to a field that is folded away opens it.
function unfold() {
  const target = location.hash.length > 1 && document.getElementById(location.hash.slice(1));
  if (!target) return;
  const folded = target.closest("details");
  if (folded) folded.open = true;
  target.focus();
}
addEventListener("hashchange", unfold);
unfold();

let stream = null;
function listen() {
  if (document.hidden) { stream?.close(); stream = null; return; }
  if (stream) return;
  stream = new EventSource("/live");
  stream.addEventListener("changed", refresh);
}

// The list that is shown, anew; what is typed, folded or focused stays.
async function refresh() {
  const shown = document.querySelector("#list");
  if (!shown || typing()) { document.body.dataset.stale = "yes"; return; }
  const box = document.querySelector("#q"), address = new URL(location.href);
  if (box) address.searchParams.set("q", box.value);
  const answer = await fetch(address, { headers: { "HX-Request": "true" } });
  if (answer.ok) { const focused = document.activeElement?.getAttribute("href");
    htmx.swap({ target: shown, text: await answer.text(), swap: "innerHTML" });
    if (focused) shown.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus(); }
}
document.addEventListener("visibilitychange", listen);
addEventListener("pagehide", () => { stream?.close(); stream = null; });
addEventListener("pageshow", (event) => { if (event.persisted) location.reload(); listen(); });
if (document.querySelector("[data-again]")) setTimeout(() => location.reload(), 1000);
if (matchMedia("(max-width: 46rem)").matches) document.querySelector(".facets details")?.removeAttribute("open");
