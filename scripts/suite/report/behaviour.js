const data = JSON.parse(document.getElementById("data").textContent);
const all = (query, root = document) => [...root.querySelectorAll(query)];
const views = new Map(); // element of a chart: its view
let chosen = data.chosen;

// Colours are variables of the style sheet, which changes them in the dark and in print.
const axis = {
  labelColor: "var(--ink)", titleColor: "var(--soft)", gridColor: "var(--line)",
  domainColor: "var(--soft)", tickColor: "var(--soft)", titleFontWeight: "normal",
  labelLimit: 150, gridOpacity: 0.7, labelSeparation: 6,
};
const config = {
  background: null, font: "system-ui, sans-serif", axis, view: { stroke: null },
  legend: {
    labelColor: "var(--ink)", titleColor: "var(--soft)", orient: "bottom", columns: 3,
    labelLimit: 170, titleFontWeight: "normal", titleOrient: "left",
  },
  point: { color: "var(--ink)" }, rule: { color: "var(--ink)" },
};

function given(element) {
  const { chart, episode } = element.dataset;
  return chart ? data.charts[chart] : data.episode.charts[episode];
}

// Return the chart with the ticked policies only, if it is one of those, each with its colour.
function narrowed(spec) {
  if (!spec.usermeta) return spec;
  const domain = [...chosen, ...spec.usermeta.always];
  const values = spec.data.values.filter((each) => domain.includes(each.policy));
  const { range } = spec.encoding.color.scale;
  const scale = { domain, range: domain.map((_, place) => (place < chosen.length ? range[place] : "var(--ink)")) };
  const color = { ...spec.encoding.color, scale };
  return { ...spec, data: { values }, encoding: { ...spec.encoding, color } };
}

function specification(element) {
  const spec = narrowed(given(element));
  const narrow = element.clientWidth < 480;
  const values = { chosen, now: now() };
  const params = (spec.params ?? []).map((each) => ({ ...each, value: values[each.name] }));
  const legend = { ...config.legend, columns: narrow ? 2 : 3, labelLimit: narrow ? 130 : 170 };
  const style = { ...config, legend, axis: { ...axis, labelLimit: narrow ? 130 : 200 } };
  return { ...spec, params, config: style };
}

async function draw(element) {
  if (views.has(element) || element.clientWidth === 0) return;
  views.set(element, null);
  const options = { mode: "vega-lite", renderer: "svg", actions: false, ast: false };
  const { view } = await window.vegaEmbed(element, specification(element), options);
  views.set(element, view);
  element.dataset.drawn = "yes";
}

function redraw(element) {
  views.get(element)?.finalize();
  views.delete(element);
  draw(element);
}

function tell(name, value) {
  for (const [element, view] of views) {
    const params = given(element).params ?? [];
    if (view && params.some((each) => each.name === name)) view.signal(name, value).runAsync();
  }
}

// Charts in details that are closed are drawn when these are opened.
for (const each of all("details")) {
  each.addEventListener("toggle", () => all(".chart", each).forEach(draw));
}

// The leaderboard: filters, sorting, ticks.

const board = document.getElementById("board");
const body = board.tBodies[0];
const rows = [...body.rows];
const text = document.getElementById("text");
const track = document.getElementById("track");

function filter() {
  const wanted = text.value.trim().toLowerCase();
  for (const row of rows) {
    const named = row.dataset.policy.toLowerCase().includes(wanted);
    const able = !track.value || row.dataset.tracks.split("|").includes(track.value);
    row.hidden = !(named && able);
  }
  for (const each of all("[data-track]")) {
    each.hidden = track.value !== "" && each.dataset.track !== track.value;
  }
  const count = rows.filter((row) => !row.hidden).length;
  document.getElementById("shown").textContent = `${count} of ${rows.length}`;
}

function sort(head, direction) {
  const place = head.cellIndex;
  const words = head.dataset.kind === "text";
  const value = (row) => {
    const cell = row.cells[place];
    if (place === 0) return Number(row.dataset.place); // those without a rank keep their order
    const found = cell.dataset.value ?? cell.textContent.trim();
    if (words) return found.toLowerCase();
    return found === "" ? NaN : Number.parseFloat(found.replace("[", ""));
  };
  const sign = direction === "ascending" ? 1 : -1;
  const order = (one, other) => {
    const [left, right] = [value(one), value(other)];
    if (words) return sign * left.localeCompare(right);
    if (Number.isNaN(left) || Number.isNaN(right)) return Number.isNaN(left) - Number.isNaN(right);
    return sign * (left - right);
  };
  all("th[aria-sort]", board).forEach((each) => each.removeAttribute("aria-sort"));
  head.setAttribute("aria-sort", direction);
  body.append(...[...body.rows].sort(order));
}

const small = new Set(["#", "policy", "kind", "paper", "95%", "gap", "us", "kB", "trained"]); // best first when ascending
function press(head) {
  const first = small.has(head.textContent.trim()) ? "ascending" : "descending";
  const other = first === "ascending" ? "descending" : "ascending";
  sort(head, head.getAttribute("aria-sort") === first ? other : first);
}

const boxes = all("input[type=checkbox]", board);

function choose(changed) {
  if (changed) {
    chosen = chosen.filter((policy) => policy !== changed.value);
    if (changed.checked) chosen.push(changed.value);
  }
  for (const box of boxes) {
    box.disabled = !box.checked && chosen.length >= data.mostChosen;
    box.closest("tr").classList.toggle("chosen", box.checked);
  }
  tell("chosen", chosen);
  [...views.keys()].filter((each) => given(each).usermeta).forEach(redraw);
}

for (const head of all("thead th", board)) {
  head.querySelector("button").addEventListener("click", () => press(head));
}
for (const box of boxes) {
  box.checked = chosen.includes(box.value);
  box.addEventListener("change", () => choose(box));
}
text.addEventListener("input", filter);
track.addEventListener("change", () => {
  filter();
  const heads = all("thead th", board);
  const head = heads.find((each) => track.value && each.dataset.track === track.value);
  sort(head ?? heads[0], head ? "descending" : "ascending");
});
document.getElementById("filters").addEventListener("submit", (event) => event.preventDefault());
const tasks = all("details.task");
const open = (value) => tasks.forEach((each) => { each.open = value; });
document.getElementById("open-all").addEventListener("click", () => open(true));
document.getElementById("close-all").addEventListener("click", () => open(false));

// The episode.

const slider = document.getElementById("time");
const player = document.getElementById("play");
const captions = all("figure.episode figcaption output");
let playing = 0;

function now() {
  return Number(document.getElementById("time").value);
}

function freshness(spells, time) {
  const { weights } = data.episode;
  const stale = spells.reduce(
    (sum, { page, start, end }) => sum + weights[page] * Math.max(0, Math.min(end, time) - start), 0,
  );
  return time > 0 ? 1 - stale / time : 1;
}

function scrub() {
  const time = now();
  document.getElementById("now").textContent = `time ${time.toFixed(1)}`;
  data.episode.played.forEach(({ spells, crawls }, place) => {
    const made = crawls.filter((each) => each.time <= time + 1e-9);
    const useful = made.filter((each) => each.changed).length;
    const last = made.at(-1);
    const did = last
      ? `; last: page ${last.page}, ${last.changed ? "had changed" : "had not changed"}` : "";
    captions[place].textContent = `fresh ${(100 * freshness(spells, time)).toFixed(1)}% so far, by `
      + `importance; ${useful} of ${made.length} crawls found a change${did}`;
  });
  tell("now", time);
}

function pause() {
  clearInterval(playing);
  playing = 0;
  player.textContent = "▶";
}

function play() {
  if (playing) { pause(); return; }
  if (now() >= Number(slider.max)) slider.value = 0;
  player.textContent = "⏸";
  playing = setInterval(() => {
    slider.stepUp();
    scrub();
    if (now() >= Number(slider.max) - 1e-9) pause();
  }, 120);
}

slider.addEventListener("input", scrub);
player.addEventListener("click", play);

const scroll = board.parentElement;
const fits = () => {
  document.getElementById("sideways").hidden = scroll.scrollWidth <= scroll.clientWidth;
};
new ResizeObserver(fits).observe(scroll);

filter();
choose();
scrub();
for (const element of all(".chart")) await draw(element);
document.documentElement.dataset.ready = "yes";
