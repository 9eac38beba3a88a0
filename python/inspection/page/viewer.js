"use strict";
// The page: panes side by side, search, what is selected, links between functions.

const UNITS = ["", "k", "M", "G", "T", "P"];

function amount(value, unit) {
  let k = 0;
  for (; value >= 1000 && k < UNITS.length - 1; k++) value /= 1000;
  return `${value.toPrecision(3).replace(/\.?0+$/, "")} ${UNITS[k]}${unit}`;
}

class Page {
  constructor(graph) {
    this.graph = graph;
    this.measure = "flops";
    this.models = graph.functions.map(buildModel);
    this.panes = graph.shown.map(index => this.addPane(index));
    this.active = this.panes[0];
    for (const pane of this.panes) this.openTrunk(pane.model);
    this.listen();
    this.followAddress();
  }

  addPane(index) {
    const section = document.createElement("section"), choice = document.createElement("select"), canvas = document.createElement("canvas");
    choice.setAttribute("aria-label", "function");
    this.models.forEach((model, i) => choice.append(new Option(`${model.fn.side}@${model.fn.name} · ${model.fn.nodes.length} nodes`, i, i === index, i === index)));
    canvas.tabIndex = 0;
    canvas.setAttribute("role", "application");
    canvas.setAttribute("aria-label", `graph of ${graphTitle(this.models[index])}`);
    const frame = document.createElement("div");
    frame.append(canvas);
    section.append(choice, frame);
    document.querySelector("main").append(section);
    const pane = new Pane(section, this.models[index], this);
    choice.onchange = () => { pane.show(this.models[+choice.value]); this.openTrunk(pane.model); };
    canvas.addEventListener("focus", () => { this.active = pane; });
    return pane;
  }

  // Groups that hold nearly everything are open at first: nobody looks for them.
  openTrunk(model) {
    for (let group = model.root; ;) {
      const largest = group.items.filter(k => k.op === undefined).reduce((a, b) => (a && a.count > b.count ? a : b), null);
      if (!largest || largest.count < 0.8 * group.count || largest.items.length > LIMIT) return;
      largest.open = true;
      group = largest;
    }
  }

  listen() {
    const search = document.getElementById("search");
    search.oninput = () => this.search(search.value);
    search.onkeydown = e => { if (e.key === "Enter") this.next(e.shiftKey ? -1 : 1); };
    addEventListener("keydown", e => { if (e.key === "/" && e.target !== search) { e.preventDefault(); search.focus(); } });
    document.getElementById("measure").onchange = e => { this.measure = e.target.value; this.drawAll(); };
    document.getElementById("expand").onclick = () => this.active.toggleAll(true);
    document.getElementById("collapse").onclick = () => this.active.toggleAll(false);
    document.getElementById("fit").onclick = () => this.panes.forEach(pane => pane.fit());
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.drawAll());
  }

  drawAll() { for (const pane of this.panes) pane.draw(); }

  onPaint() { if (!this.painted) this.painted = performance.now(); }

  share(model, item) {
    const node = item.op === undefined ? null : model.fn.nodes[item.op];
    const value = node ? node[this.measure === "flops" ? NODE.flops : NODE.bytes] : item[this.measure];
    return value / (model.root[this.measure] || 1);
  }

  total(group) {
    const changed = group.changed ? ` · ${group.changed} changed` : "";
    const measure = this.measure === "flops" && group.flops ? "flops" : "bytes"; // what only moves data has no operations
    return `${group.count} nodes · ${amount(group[measure], measure === "flops" ? "FLOP" : "B")}${changed}`;
  }

  // Rows of text: what hovering and the panel show.
  describe(model, item) {
    if (item.op === undefined) {
      return [...this.naming(model, item), ["nodes", item.count], ["bytes", amount(item.bytes, "B")], ["operations", amount(item.flops, "FLOP")]];
    }
    const fn = model.fn, node = fn.nodes[item.op], rows = [["op", fn.ops[node[NODE.op]]]];
    const add = (name, value) => { if (value) rows.push([name, value]); };
    add("name", node[NODE.label]);
    add("type", fn.types[node[NODE.type]]);
    add("module", fn.paths[node[NODE.path]]);
    add("bytes", node[NODE.bytes] && amount(node[NODE.bytes], "B"));
    add("operations", node[NODE.flops] && amount(node[NODE.flops], "FLOP"));
    for (const note of (fn.notes[node[NODE.note]] || "").split("\n").filter(Boolean)) rows.push(note.split(/: (.*)/s).slice(0, 2));
    add("compared", node[NODE.state] && STATES[node[NODE.state]]);
    return rows;
  }

  // Of a kernel what its ops tell of it.
  naming(model, group) {
    if (!group.kernel) return [["module", group.path || group.name]];
    const fn = model.fn, notes = fn.notes[fn.nodes[group.items[0].op][NODE.note]].split("\n");
    return [["kernel", notes.find(note => note.startsWith("kernel: ")).slice(8)], ["module", group.parent.path || group.parent.name]];
  }

  tip(text, event) {
    const tip = document.getElementById("tip");
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    tip.style.left = `${Math.min(event.clientX + 14, innerWidth - 440)}px`;
    tip.style.top = `${Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 8)}px`;
  }

  onSelect(pane, item) {
    this.active = pane;
    const panel = document.getElementById("panel"), list = document.createElement("dl");
    panel.replaceChildren(list);
    if (!item) return;
    for (const [name, value] of this.describe(pane.model, item)) addRow(list, name, [String(value)]);
    if (item.op === undefined) return;
    const fn = pane.model.fn, link = fn.nodes[item.op][NODE.link];
    this.addLinks(list, "reads", pane.model, pane.model.ins[item.op]);
    this.addLinks(list, "read by", pane.model, pane.model.outs[item.op]);
    if (link < 0) return;
    const other = this.models[fn.linked];
    this.addLinks(list, this.graph.compared ? "counterpart" : "prepared by", other, [link]);
    if (!this.graph.compared) this.addLinks(list, "raw weights", other, sourcesOf(other, link));
    const shown = this.panes.find(p => p !== pane && p.model === other);
    if (shown && document.getElementById("follow").checked) this.follow(shown, other.itemOf[link]);
  }

  // Shows the other end of a link without asking that pane to show this one again.
  follow(pane, item) {
    const active = this.active, box = document.getElementById("follow"), panel = document.getElementById("panel");
    const rows = [...panel.childNodes];
    box.checked = false;
    pane.reveal(item);
    box.checked = true;
    this.active = active;
    panel.replaceChildren(...rows);
  }

  addLinks(list, name, model, nodes) {
    if (!nodes.length) return;
    const links = nodes.slice(0, 12).map(i => {
      const button = document.createElement("button");
      button.textContent = nameOf(model.itemOf[i], model.fn);
      button.onclick = () => this.goTo(model, model.itemOf[i]);
      return button;
    });
    addRow(list, name, nodes.length > 12 ? [...links, `and ${nodes.length - 12} more`] : links);
  }

  goTo(model, item) {
    const pane = this.panes.find(p => p.model === model) || this.active;
    if (pane.model !== model) {
      pane.section.querySelector("select").value = this.models.indexOf(model);
      pane.show(model);
    }
    pane.reveal(item);
  }

  search(text) {
    const matches = matcher(text);
    this.found = [];
    this.current = -1;
    for (const model of text ? [...new Set(this.panes.map(p => p.model)), ...this.models.filter(m => !this.panes.some(p => p.model === m))] : []) {
      const {ops, types, paths, notes} = model.fn, known = [ops, types, paths, notes].map(table => table.map(matches));
      model.fn.nodes.forEach((node, i) => {
        const hit = known[0][node[NODE.op]] || known[1][node[NODE.type]] || known[2][node[NODE.path]] || known[3][node[NODE.note]];
        if (hit || (node[NODE.label] && matches(node[NODE.label]))) this.found.push([model, model.itemOf[i]]);
      });
    }
    this.tellFound(text);
  }

  next(step) {
    if (!this.found || !this.found.length) return;
    this.current = (this.current + step + this.found.length) % this.found.length;
    this.goTo(...this.found[this.current]);
    this.tellFound("shown");
  }

  tellFound(text) {
    const place = this.current >= 0 ? `${this.current + 1} of ` : "";
    document.getElementById("count").textContent = text ? `${place}${this.found.length} found` : "";
  }

  // view.html#main/model.layers.3 shows that module.
  followAddress() {
    const [name, path] = decodeURIComponent(location.hash.slice(1)).split("/");
    const model = name && this.models.find(m => m.fn.name === name);
    const group = model && path && model.groups.find(g => g.path === path && !g.section);
    if (group) requestAnimationFrame(() => { group.open = true; this.goTo(model, group); });
  }
}

function graphTitle(model) { return `${model.fn.side}@${model.fn.name}`; }

function matcher(text) {
  try {
    const expression = new RegExp(text, "i");
    return s => expression.test(s);
  } catch {
    const lower = text.toLowerCase();
    return s => s.toLowerCase().includes(lower);
  }
}

function addRow(list, name, values) {
  const term = document.createElement("dt"), value = document.createElement("dd");
  term.textContent = name;
  value.append(...values);
  list.append(term, value);
}

async function readGraph() {
  const bytes = Uint8Array.from(atob(document.getElementById("graph").textContent), c => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

readGraph().then(graph => { window.page = new Page(graph); });
