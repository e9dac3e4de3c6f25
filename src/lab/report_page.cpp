#include "lab/report_page.h"

namespace pleat {
namespace {

constexpr std::string_view page = R"page(<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:; base-uri 'none'; form-action 'none'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{{title}}</title>
<style>
:root {
  --page: #f6f7f9; --card: #ffffff; --text: #1b1f24; --soft: #5b6570; --line: #dfe3e8;
  --accent: #1864be; --worst: #d95f0e; --neutral: #eceef0; --best: #1864be; --hover: #f0f4f9;
  --code: #eef1f4;
}
@media (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --card: #1c2025; --text: #e6e9ed; --soft: #9aa4af; --line: #31373f;
    --accent: #6cb0ff; --worst: #ff8f3d; --neutral: #333941; --best: #5aa9ff; --hover: #252b32;
    --code: #272c33;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--text);
  font: 14px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif;
}
main { max-width: 1280px; margin: 0 auto; padding: 32px 24px 64px; }
h1 { font-size: 24px; line-height: 1.25; margin: 0 0 4px; letter-spacing: -0.01em; }
h2 { font-size: 16px; margin: 40px 0 4px; }
h3 { font-size: 14px; margin: 0; font-weight: 600; }
p { margin: 0 0 12px; color: var(--soft); max-width: 80ch; }
code, .mono { font-family: ui-monospace, SFMono-Regular, Menlo, Consolas, "DejaVu Sans Mono", monospace; font-size: 12.5px; }
.card { background: var(--card); border: 1px solid var(--line); border-radius: 8px; }
.facts { display: flex; flex-wrap: wrap; gap: 12px; margin: 20px 0 0; padding: 0; }
.facts div { padding: 10px 16px; min-width: 130px; }
.facts dt { color: var(--soft); font-size: 12px; }
.facts dd { margin: 0; font-size: 18px; font-weight: 600; font-variant-numeric: tabular-nums; }
.maps { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 380px), 1fr)); gap: 16px; margin-top: 12px; }
.map { padding: 14px 16px 12px; }
.map header { display: flex; justify-content: space-between; align-items: baseline; gap: 12px; margin-bottom: 6px; }
.map header span { color: var(--soft); font-size: 12px; font-variant-numeric: tabular-nums; }
svg { display: block; width: 100%; height: auto; overflow: visible; }
svg text { fill: var(--soft); font-size: 11px; font-family: inherit; font-variant-numeric: tabular-nums; }
svg .axis { stroke: var(--line); fill: none; shape-rendering: crispEdges; }
.cell { shape-rendering: crispEdges; }
.cell.aside { fill-opacity: .4; }
.cell:hover, .cell:focus { stroke: var(--text); stroke-width: 1.5; outline: none; }
.mark { fill: none; stroke: var(--text); stroke-width: 1.6; pointer-events: none; }
.survivor { fill: var(--text); pointer-events: none; }
.front { display: grid; grid-template-columns: minmax(0, 3fr) minmax(0, 2fr); gap: 16px; margin-top: 12px; }
@media (max-width: 860px) { .front { grid-template-columns: minmax(0, 1fr); } }
.front > div { padding: 14px 16px; }
.controls { display: flex; flex-wrap: wrap; gap: 8px 16px; margin: 0 0 10px; align-items: center; }
label { color: var(--soft); font-size: 12px; display: inline-flex; gap: 6px; align-items: center; }
select, input, button.more {
  font: inherit; font-size: 13px; color: var(--text); background: var(--card);
  border: 1px solid var(--line); border-radius: 6px; padding: 4px 8px;
}
input { width: 220px; }
.point { fill: var(--soft); opacity: .35; }
.point.on { fill: var(--accent); opacity: 1; }
.point.aside { fill: none; stroke: var(--soft); }
.point:hover { stroke: var(--text); stroke-width: 2; opacity: 1; }
.identity { fill: var(--card); stroke: var(--text); stroke-width: 1.8; }
.stair { fill: none; stroke: var(--accent); stroke-width: 1.5; }
.grid { stroke: var(--line); stroke-width: 1; shape-rendering: crispEdges; }
.scroll { overflow: auto; max-height: 72vh; margin-top: 12px; }
table { border-collapse: separate; border-spacing: 0; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: 5px 12px; text-align: right; white-space: nowrap; border-bottom: 1px solid var(--line); }
th { font-weight: 600; font-size: 12px; color: var(--soft); background: var(--card); }
thead { position: sticky; top: 0; z-index: 1; }
thead tr:first-child th { border-bottom: 0; padding-top: 10px; color: var(--text); font-size: 13px; }
th.text, td.text { text-align: left; }
th.first, td.first { border-left: 1px solid var(--line); }
#table th:first-child, #table td:first-child { position: sticky; left: 0; background: var(--card); }
#table tr.reference td:first-child { background: var(--code); }
#table tbody tr:hover td { background: var(--hover); }
#table tbody tr:last-child td { border-bottom: 0; }
tr.reference td { background: var(--code); font-weight: 600; }
td .error { color: var(--soft); }
td code { background: none; }
th button { all: unset; cursor: pointer; }
th button:hover, th button:focus-visible { color: var(--accent); text-decoration: underline; }
th[aria-sort="ascending"] button::after { content: " \2191"; }
th[aria-sort="descending"] button::after { content: " \2193"; }
.better { color: var(--best); }
.worse { color: var(--worst); }
.list { width: 100%; }
.list td, .list th { padding: 4px 8px; white-space: normal; }
.list td.text code { overflow-wrap: anywhere; }
.settings { display: grid; grid-template-columns: max-content minmax(0, 1fr); gap: 0; margin: 12px 0 0; padding: 6px 16px; }
.settings dt, .settings dd { padding: 6px 0; border-bottom: 1px solid var(--line); margin: 0; overflow-wrap: anywhere; }
.settings dt { color: var(--soft); padding-right: 24px; }
.settings dt:last-of-type, .settings dd:last-of-type { border-bottom: 0; }
ul { margin: 12px 0 0; padding: 10px 16px 10px 32px; }
#tip {
  position: fixed; z-index: 9; pointer-events: none; display: none; max-width: 420px; padding: 8px 12px;
  background: var(--text); color: var(--page); border-radius: 6px; font-size: 12.5px; line-height: 1.45;
  box-shadow: 0 4px 16px rgb(0 0 0 / .25); white-space: pre-line; overflow-wrap: anywhere;
}
@media print { .scroll { max-height: none; } .controls { display: none; } }
</style>
</head>
<body>
<main>
<h1 id="title"></h1>
<noscript><p>This page draws its maps and tables with a script of its own; it loads nothing.</p></noscript>
<p id="model"></p>
<dl class="facts" id="facts"></dl>
<section id="maps-section" hidden>
<h2>Repeated blocks</h2>
<p>A cell is the plan that runs layers i to j&minus;1 twice: i downwards, j to the right. Grey is the
identity plan's value, blue is better, orange is worse; colours end at the values in each map. The
ring is the best cell.<span id="maps-survive" hidden> A dot is a difference that survives correction for
the many plans that were tried (see the notes).</span><span id="maps-aside" hidden>
Pale cells do not compare with the others (see the pointer), and never bear the ring.</span></p>
<div class="maps" id="maps"></div>
</section>
<section id="front-section" hidden>
<h2>Quality against cost</h2>
<p>Plans on the line are beaten by no other plan, nor by the identity plan (the open circle).<span id="front-aside" hidden>
Small rings are plans that do not compare with the others, and are left out of the line.</span></p>
<div class="front">
<div class="card"><div class="controls"><label>measure <select id="front-measure"></select></label>
<label>cost <select id="front-cost"><option value="compute_ratio">compute per token</option>
<option value="read_ratio">weight bytes read per token</option>
<option value="kv_ratio">cache bytes</option></select></label></div><div id="front"></div></div>
<div class="card"><h3>On the line</h3><table class="list" id="front-list"></table></div>
</div>
</section>
<section>
<h2>All plans</h2>
<p id="table-note"></p>
<div class="controls"><label>show plans with <input id="filter" type="search" placeholder="26,34"></label><span id="shown" class="mono"></span></div>
<div class="card scroll" tabindex="0"><table id="table"></table></div>
</section>
<section id="settings-section" hidden><h2>Settings</h2><dl class="card settings" id="settings"></dl></section>
<section id="notes-section" hidden><h2>Notes</h2><ul class="card" id="notes"></ul></section>
</main>
<div id="tip" role="tooltip"></div>
<script type="application/json" id="data">{{data}}</script>
)page"
                                  R"page(<script>
"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const SVG = "http://www.w3.org/2000/svg";

function element(name, attributes = {}, ...children) {
  const node = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  node.append(...children);
  return node;
}
function shape(name, attributes = {}, text = "") {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text) node.textContent = text;
  return node;
}
const known = (x) => typeof x === "number";
function number(x, digits = 4) {
  if (!known(x)) return "";
  const size = Math.abs(x);
  if (size !== 0 && (size < 1e-4 || size >= 1e6)) return x.toExponential(2);
  return x.toFixed(size >= 1000 ? 1 : size >= 100 ? 2 : digits).replace("-", "\u2212");
}
const signed = (x) => (known(x) && x > 0 ? "+" : "") + number(x);
const ratio = (x) => (known(x) ? x.toFixed(3) : "");
const percent = Math.round(data.confidence * 1000) / 10;
const has = (part) => data.rows.some((row) => (row.scores || []).some((it) => it[part] !== undefined));
const score = (row, m, part) => ((row.scores || [])[m] || {})[part];

// What a pointer or the keyboard is at, in words.
const tip = $("tip");
function explain(node, text) {
  node.addEventListener("pointerenter", () => { tip.textContent = text(); tip.style.display = "block"; });
  node.addEventListener("pointermove", (event) => {
    const right = event.clientX + 16 + tip.offsetWidth > innerWidth;
    const low = event.clientY + 16 + tip.offsetHeight > innerHeight;
    tip.style.left = Math.max(4, right ? event.clientX - tip.offsetWidth - 12 : event.clientX + 16) + "px";
    tip.style.top = Math.max(4, low ? event.clientY - tip.offsetHeight - 12 : event.clientY + 16) + "px";
  });
  node.addEventListener("pointerleave", () => { tip.style.display = "none"; });
}
function describe(row) {
  const lines = [row.flag || row.canonical];
  data.measures.forEach((measure, m) => {
    const value = score(row, m, "selection");
    if (!value || !known(value.value)) return;
    const difference = score(row, m, "difference");
    lines.push(measure.name + " " + number(value.value) + (known(value.error) ? " \u00b1 " + number(value.error) : "") +
      (difference && known(difference.value) ? ", " + signed(difference.value) + " [" + signed(difference.low) + ", " + signed(difference.high) + "]" : ""));
  });
  if (known(row.balanced)) lines.push("balanced " + signed(row.balanced));
  if (row.set_aside) lines.push(row.set_aside);
  lines.push("compute " + ratio(row.compute_ratio) + ", cache " + ratio(row.kv_ratio));
  return lines.join("\n");
}

// Head.
$("title").textContent = data.title;
$("model").textContent = data.model;
function fact(name, value) { $("facts").append(element("div", {class: "card"}, element("dt", {}, name), element("dd", {}, value))); }
fact("plans tried", String(data.n_plans_tried));
if (data.n_layer > 0) fact("layers", String(data.n_layer));
for (const measure of data.measures) {
  const value = measure.identity && measure.identity.selection;
  if (value) fact("identity, " + measure.name, number(value.value) + (known(value.error) ? " \u00b1 " + number(value.error) : ""));
}

// Colours, mixed in the page so that they follow its light or dark scheme.
function channels(name) {
  const hex = getComputedStyle(document.documentElement).getPropertyValue(name).trim();
  return [1, 3, 5].map((i) => parseInt(hex.slice(i, i + 2), 16));
}
function palette() {
  const worst = channels("--worst"), neutral = channels("--neutral"), best = channels("--best");
  return (t) => {
    const x = Math.max(-1, Math.min(1, t)), end = x < 0 ? worst : best;
    return "rgb(" + neutral.map((c, i) => Math.round(c + (end[i] - c) * Math.abs(x))).join(",") + ")";
  };
}

// -1 for the worst that has a colour of its own, 1 for the best.
const place = (gain, map) => (gain === 0 ? 0 : gain / (gain < 0 ? map.scale_down : map.scale_up));
function drawMap(map) {
  const n = Math.max(data.n_layer, ...map.cells.map((cell) => data.rows[cell.row].end), 1);
  const color = palette();
  const size = 400, left = 46, top = 34, step = size / n;
  const svg = shape("svg", {viewBox: "0 0 " + (left + size + 4) + " " + (top + size + 6), role: "img", "aria-label": "map of " + map.name});
  const every = Math.max(1, Math.ceil(n / 10 / (n > 40 ? 4 : 2)) * (n > 40 ? 4 : 2));
  for (let k = 0; k <= n; k += n <= 12 ? 1 : every) {
    if (k > 0) svg.append(shape("text", {x: left + (k - .5) * step, y: top - 7, "text-anchor": "middle"}, String(k)));
    if (k < n) svg.append(shape("text", {x: left - 7, y: top + (k + .5) * step + 4, "text-anchor": "end"}, String(k)));
  }
  svg.append(shape("path", {class: "axis", d: "M" + left + " " + top + "H" + (left + size) + "M" + left + " " + top + "V" + (top + size)}));
  svg.append(shape("text", {class: "axis-name", x: left + size / 2, y: 11, "text-anchor": "middle"}, "end j"));
  svg.append(shape("text", {class: "axis-name", x: 11, y: top + size / 2, "text-anchor": "middle", transform: "rotate(-90 11 " + (top + size / 2) + ")"}, "begin i"));
  const m = data.measures.findIndex((measure) => measure.name === map.name);
  const gap = step > 8 ? 1 : 0;
  const overlay = [];
  let best = null;
  for (const cell of map.cells) {
    const row = data.rows[cell.row];
    const x = left + (row.end - 1) * step, y = top + row.begin * step;
    const rect = shape("rect", {class: row.set_aside ? "cell aside" : "cell", x, y, width: step - gap, height: step - gap, fill: color(place(cell.gain, map)),
      "data-measure": map.name, "data-begin": row.begin, "data-end": row.end, "data-value": cell.value, "data-plan": row.flag});
    explain(rect, () => describe(row));
    svg.append(rect);
    if (!row.set_aside && (!best || cell.gain > best.gain)) best = {gain: cell.gain, x, y};
    if (m >= 0 && score(row, m, "survives")) {
      overlay.push(shape("circle", {class: "survivor", cx: x + (step - gap) / 2, cy: y + (step - gap) / 2, r: Math.max(1, Math.min(2.5, step / 5))}));
    }
  }
  if (best) overlay.push(shape("circle", {class: "mark", cx: best.x + (step - gap) / 2, cy: best.y + (step - gap) / 2, r: Math.max(5, step * .75)}));
  svg.append(...overlay);
  // The lower triangle holds no plan, so the legend is there.
  const width = 150, bar = 10, x0 = left + 10, y0 = top + size - 28, parts = 33;
  for (let k = 0; k < parts; ++k) {
    const t = 2 * k / (parts - 1) - 1;
    if ((t < 0 && !(map.scale_down > 0)) || (t > 0 && !(map.scale_up > 0))) continue;
    svg.append(shape("rect", {x: x0 + k * width / parts, y: y0, width: width / parts + .5, height: bar, fill: color(t)}));
  }
  const sign = map.higher_is_better ? 1 : -1;
  const mark = (at, anchor, text, dy) => svg.append(shape("text", {x: x0 + at * width, y: y0 + dy, "text-anchor": anchor}, text));
  mark(.5, "middle", number(map.identity, 3), bar + 14);
  if (map.scale_down > 0) {
    mark(0, "start", number(map.identity - sign * map.scale_down, 3), bar + 14);
    mark(0, "start", "worse", -6);
  }
  if (map.scale_up > 0) {
    mark(1, "end", number(map.identity + sign * map.scale_up, 3), bar + 14);
    mark(1, "end", "better", -6);
  }
  const title = element("header", {}, element("h3", {}, map.name),
    element("span", {}, "identity " + number(map.identity) + (map.higher_is_better ? ", higher is better" : ", lower is better")));
  return element("article", {class: "card map"}, title, svg);
}
function drawMaps() {
  $("maps-section").hidden = data.heatmaps.length === 0;
  for (const id of ["maps-aside", "front-aside"]) $(id).hidden = !data.rows.some((row) => row.set_aside);
  $("maps-survive").hidden = !has("survives");
  $("maps").replaceChildren(...data.heatmaps.map(drawMap));
}

// Quality against cost.
function ticks(low, high, count) {
  const raw = (high - low) / count, power = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 2.5, 5, 10].map((k) => k * power).find((k) => k >= raw);
  const list = [];
  for (let x = Math.ceil(low / step) * step; x <= high + step * 1e-9; x += step) list.push(x);
  return {list, digits: Math.max(0, Math.min(6, 1 - Math.floor(Math.log10(step)) - (step / power === 2.5 ? 0 : 1)))};
}
function drawFront() {
  const m = Number($("front-measure").value), cost = $("front-cost").value, measure = data.measures[m];
  const identity = measure.identity && measure.identity.selection ? measure.identity.selection.value : undefined;
  const points = data.rows.map((row, i) => ({i, row, x: row[cost], y: (score(row, m, "selection") || {}).value})).filter((p) => known(p.x) && known(p.y));
  const on = data.pareto_fronts[m][cost], isOn = new Set(on);
  // A few broken plans would press all others into a line: the axis shows what is near the best.
  const losses = points.map((p) => (measure.higher_is_better ? -p.y : p.y)).concat(known(identity) ? [measure.higher_is_better ? -identity : identity] : []).sort((a, b) => a - b);
  const first = losses[0], middle = losses[Math.floor(losses.length / 4)], last = losses[losses.length - 1];
  let limit = Math.min(last, first + 2 * Math.max(middle - first, Math.abs(first) * 1e-6));
  for (const i of on) { const y = score(data.rows[i], m, "selection").value; limit = Math.max(limit, measure.higher_is_better ? -y : y); }
  if (known(identity)) limit = Math.max(limit, measure.higher_is_better ? -identity : identity);
  const near = points.filter((p) => (measure.higher_is_better ? -p.y : p.y) <= limit);
  const xs = near.map((p) => p.x).concat([1]), ys = (measure.higher_is_better ? [-first, -limit] : [first, limit]);
  const pad = (low, high) => { const d = (high - low || Math.abs(high) * .1 || 1) * .06; return [low - d, high + d]; };
  const [x0, x1] = pad(Math.min(...xs), Math.max(...xs)), [y0, y1] = pad(Math.min(...ys), Math.max(...ys));
  const W = 640, H = 380, L = 62, R = 12, T = 10, B = 40;
  const px = (x) => L + (x - x0) / (x1 - x0) * (W - L - R), py = (y) => H - B - (y - y0) / (y1 - y0) * (H - T - B);
  const svg = shape("svg", {viewBox: "0 0 " + W + " " + H, role: "img", "aria-label": "quality against cost"});
  const xTicks = ticks(x0, x1, 7), yTicks = ticks(y0, y1, 6);
  for (const x of xTicks.list) {
    svg.append(shape("line", {class: "grid", x1: px(x), x2: px(x), y1: T, y2: H - B}));
    svg.append(shape("text", {x: px(x), y: H - B + 16, "text-anchor": "middle"}, x.toFixed(Math.max(xTicks.digits, 1))));
  }
  for (const y of yTicks.list) {
    svg.append(shape("line", {class: "grid", x1: L, x2: W - R, y1: py(y), y2: py(y)}));
    svg.append(shape("text", {x: L - 8, y: py(y) + 4, "text-anchor": "end"}, y.toFixed(yTicks.digits)));
  }
  svg.append(shape("text", {x: (L + W - R) / 2, y: H - 6, "text-anchor": "middle"}, $("front-cost").selectedOptions[0].textContent + ", identity plan = 1"));
  svg.append(shape("text", {x: 14, y: (T + H - B) / 2, "text-anchor": "middle", transform: "rotate(-90 14 " + (T + H - B) / 2 + ")"},
    measure.name + (measure.higher_is_better ? " (higher is better)" : " (lower is better)")));
  let path = "", before = null;
  for (const i of on) {
    const x = px(data.rows[i][cost]), y = py(score(data.rows[i], m, "selection").value);
    path += before === null ? "M" + x + " " + y : "H" + x + "V" + y;
    before = y;
  }
  if (path) svg.append(shape("path", {class: "stair", d: path + "H" + (W - R)}));
  for (const p of near.sort((a, b) => isOn.has(a.i) - isOn.has(b.i))) {
    const dot = shape("circle", {class: isOn.has(p.i) ? "point on" : p.row.set_aside ? "point aside" : "point", cx: px(p.x), cy: py(p.y), r: isOn.has(p.i) ? 4.5 : 3, "data-plan": p.row.flag, "data-cost": p.x, "data-value": p.y});
    explain(dot, () => describe(p.row));
    svg.append(dot);
  }
  if (known(identity)) {
    const dot = shape("circle", {class: "identity", cx: px(1), cy: py(identity), r: 5});
    explain(dot, () => "identity plan\n" + measure.name + " " + number(identity));
    svg.append(dot);
  }
  const hidden = points.length - near.length;
  $("front").replaceChildren(svg, ...(hidden > 0 ? [element("p", {style: "margin:8px 0 0"}, hidden + " plans far worse than the rest are outside the picture.")] : []));
  const head = element("tr", {}, element("th", {class: "text"}, "plan"), element("th", {}, "cost"), element("th", {}, measure.name));
  const rows = on.map((i) => element("tr", {}, element("td", {class: "text"}, element("code", {}, data.rows[i].flag)),
    element("td", {}, ratio(data.rows[i][cost])), element("td", {}, number(score(data.rows[i], m, "selection").value))));
  $("front-list").replaceChildren(head, ...rows);
}
if (data.rows.length > 0 && data.measures.length > 0) {
  $("front-section").hidden = false;
  data.measures.forEach((measure, m) => $("front-measure").append(element("option", {value: m}, measure.name)));
  $("front-measure").addEventListener("change", drawFront);
  $("front-cost").addEventListener("change", drawFront);
}

// The table.
const columns = [
  {group: "", name: "plan", text: true, key: (row) => row.flag, cell: (row) => [element("code", {}, row.flag || row.canonical), ...(row.set_aside ? [element("span", {class: "error"}, " " + row.set_aside)] : [])], title: (row) => row.canonical},
  {group: "cost", first: true, name: "compute", key: (row) => row.compute_ratio, cell: (row) => [ratio(row.compute_ratio)]},
  {group: "cost", name: "read", key: (row) => row.read_ratio, cell: (row) => [ratio(row.read_ratio)]},
  {group: "cost", name: "cache", key: (row) => row.kv_ratio, cell: (row) => [ratio(row.kv_ratio)]},
];
function withError(it) {
  if (!it || !known(it.value)) return [];
  return known(it.error) ? [number(it.value) + " ", element("span", {class: "error"}, "\u00b1 " + number(it.error))] : [number(it.value)];
}
function difference(it, higher) {
  if (!it || !known(it.value)) return [];
  const sure = known(it.low) && known(it.high) && (it.low > 0 || it.high < 0);
  const kind = !sure ? "" : (it.value > 0) === higher ? "better" : "worse";
  return [element("span", {class: kind}, signed(it.value)),
    ...(known(it.low) ? [element("span", {class: "error"}, " [" + signed(it.low) + ", " + signed(it.high) + "]")] : [])];
}
data.measures.forEach((measure, m) => {
  const higher = measure.higher_is_better;
  const here = (part) => data.rows.some((row) => score(row, m, part) !== undefined);
  const add = (name, part, cell, value, first) => {
    if (first || here(part)) columns.push({group: measure.name, first, name, measure: m, key: (row) => value(score(row, m, part)), cell: (row) => cell(score(row, m, part)), higher, part});
  };
  const valueOf = (it) => (it ? it.value : undefined);
  add("selection", "selection", withError, valueOf, true);
  add("difference", "difference", (it) => difference(it, higher), valueOf);
  add("validation", "validation", withError, valueOf);
  add("difference", "validation_difference", (it) => difference(it, higher), valueOf);
  add("survives", "survives", (it) => (it === undefined ? [] : [it ? "\u2713 yes" : "no"]), (it) => (it === undefined ? undefined : Number(it)));
});
if (data.rows.some((row) => known(row.balanced))) {
  columns.push({group: "balanced", first: true, name: "z sum", higher: true, key: (row) => row.balanced, cell: (row) => [signed(row.balanced)]});
}
let sorted = -1;  // as the data has them: the order of who tried them
let descending = false;

function drawTable() {
  const groups = element("tr"), names = element("tr");
  let last = null;
  columns.forEach((column, c) => {
    if (column.group && last && last.name === column.group) {
      last.cell.colSpan += 1;
    } else {
      const cell = element("th", {class: (column.text ? "text" : "") + (column.first ? " first" : ""), scope: "colgroup"}, column.group);
      cell.colSpan = 1;
      groups.append(cell);
      last = {name: column.group, cell};
      if (column.group) cell.style.textAlign = "left";
    }
    const button = element("button", {type: "button"}, column.name);
    button.addEventListener("click", () => {
      descending = c === sorted ? !descending : Boolean(column.higher);
      sorted = c;
      drawTable();
    });
    const head = element("th", {class: (column.text ? "text" : "") + (column.first ? " first" : ""), scope: "col"}, button);
    if (c === sorted) head.setAttribute("aria-sort", descending ? "descending" : "ascending");
    names.append(head);
  });
  const wanted = $("filter").value.replace(/\s/g, "");
  const rows = data.rows.filter((row) => !wanted || (row.flag + " " + row.canonical).replace(/\s/g, "").includes(wanted));
  const key = sorted < 0 ? () => 0 : columns[sorted].key, turn = descending ? -1 : 1;
  rows.sort((a, b) => {
    const x = key(a), y = key(b);
    // What does not compare with the others stands below them, whatever it is sorted by.
    if (!a.set_aside !== !b.set_aside) return a.set_aside ? 1 : -1;
    if (x === undefined || y === undefined) return (x === undefined) - (y === undefined);
    return turn * (typeof x === "string" ? x.localeCompare(y, "en", {numeric: true}) : x - y);
  });
  const line = (row, attributes) => element("tr", attributes, ...columns.map((column) => {
    const cell = element("td", {class: (column.text ? "text" : "") + (column.first ? " first" : "")}, ...column.cell(row));
    if (column.title) cell.title = column.title(row);
    return cell;
  }));
  const identity = {flag: "identity", canonical: "every layer once", compute_ratio: 1, read_ratio: 1, kv_ratio: 1, scores: data.measures.map((measure) => measure.identity)};
  const balancedMap = data.heatmaps.find((map) => map.name === "balanced");
  if (balancedMap) identity.balanced = balancedMap.identity;
  const body = element("tbody", {}, line(identity, {class: "reference"}),
    ...rows.map((row) => line(row, {"data-plan": row.flag})));
  $("table").replaceChildren(element("thead", {}, groups, names), body);
  $("shown").textContent = rows.length === data.rows.length ? data.rows.length + " plans" : rows.length + " of " + data.rows.length + " plans";
}
$("filter").addEventListener("input", drawTable);
$("table-note").textContent = "Values are means \u00b1 their standard error. Differences are to the identity plan on the same items, with " + percent +
  " % intervals." + (has("validation") ? " The selection items chose; the validation items had no say." : "") + " " + data.n_plans_tried + " plans were tried: some look good by luck." +
  (has("survives") ? " \u201cSurvives\u201d says which differences remain after correction for the many plans; the notes say how." : "") +
  (data.balanced_measures.length > 0 ? " \u201cBalanced\u201d is the sum of standard scores (z) of " + data.balanced_measures.join(", ") + " over all plans." : "");

for (const it of data.settings) $("settings").append(element("dt", {}, it.name), element("dd", {class: "mono"}, it.value));
if (data.command) $("settings").append(element("dt", {}, "command"), element("dd", {class: "mono"}, data.command));
for (const measure of data.measures) {
  const parts = [measure.unit, measure.n_selection > 0 ? measure.n_selection + " selection items" : "", measure.n_validation > 0 ? measure.n_validation + " validation items" : ""].filter(Boolean);
  if (parts.length > 0) $("settings").append(element("dt", {}, measure.name), element("dd", {}, parts.join(", ")));
}
$("settings-section").hidden = $("settings").children.length === 0;
for (const note of data.notes) $("notes").append(element("li", {}, note));
$("notes-section").hidden = data.notes.length === 0;

function drawAll() {
  drawMaps();
  if (!$("front-section").hidden) drawFront();
}
drawAll();
drawTable();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
document.documentElement.dataset.ready = "yes";
</script>
</body>
</html>
)page";

}  // namespace

std::string_view report_page() { return page; }

}  // namespace pleat
