"use strict";
// One function on a canvas: groups open and close, what is in view is drawn, the rest is not touched.

const PAD = 12, HEAD = 26, MIN_ZOOM = 0.01, MAX_ZOOM = 3, LONGEST_LABEL = 40;
const FONT = "system-ui, sans-serif";
const STATES = ["same", "changed", "added", "removed"];

class Pane {
  constructor(section, model, page) {
    Object.assign(this, {section, model, page, zoom: 1, x: 0, y: 0, selected: null, hovered: null, pending: false, fitted: false});
    this.canvas = section.querySelector("canvas");
    this.context = this.canvas.getContext("2d");
    this.widths = new Map();
    this.listen();
    new ResizeObserver(() => this.draw()).observe(this.canvas);
  }

  show(model) {
    Object.assign(this, {model, selected: null, hovered: null, fitted: false});
    this.draw();
  }

  // Layout ---------------------------------------------------------------------------------------------------------------

  textOf(item) {
    if (item.op === undefined) return `${item.open ? "▾" : "▸"} ${item.name}`;
    const fn = this.model.fn, node = fn.nodes[item.op], op = fn.ops[node[NODE.op]];
    if (!node[NODE.label]) return op;
    const label = node[NODE.label].replace(`${fn.paths[node[NODE.path]]}.`, ""); // the groups around it say the rest
    return `${op} ${label.length > LONGEST_LABEL ? `${label.slice(0, LONGEST_LABEL)}…` : label}`;
  }

  widthOf(text) {
    if (!this.widths.has(text)) {
      this.context.font = `12px ${FONT}`;
      this.widths.set(text, this.context.measureText(text).width);
    }
    return this.widths.get(text);
  }

  size(item) {
    const text = this.widthOf(this.textOf(item));
    if (item.op !== undefined) return Object.assign(item, {w: Math.min(320, text + 20), h: 26});
    if (!item.open) return Object.assign(item, {w: Math.max(110, text + 30), h: 40});
    if (!item.layout) this.layOut(item);
    return Object.assign(item, {w: Math.max(item.layout.w, text + 40) + 2 * PAD, h: item.layout.h + HEAD + 2 * PAD});
  }

  layOut(group) {
    for (const item of group.items) this.size(item);
    group.layout = layered(group.items, [...group.edges.values()]);
  }

  // Only the groups around what changed are laid out again.
  toggle(group, open = !group.open) {
    group.open = open;
    for (let g = group; g; g = g.parent) if (g !== group) g.layout = null;
    this.draw();
  }

  // As users do: its title stays where it is, not what happens to be below.
  toggleInPlace(group) {
    const title = () => {
      this.ready();
      const [x, y] = this.centre(group);
      return [x * this.zoom, (y - group.h / 2) * this.zoom];
    };
    const [x, y] = title();
    this.toggle(group);
    const [newX, newY] = title();
    this.x += x - newX;
    this.y += y - newY;
  }

  toggleAll(open) {
    for (const group of this.model.groups) if (group.parent) group.open = open;
    for (const group of this.model.groups) group.layout = null;
    this.fitted = false;
    this.draw();
  }

  ready() {
    this.size(this.model.root);
    this.model.root.x = this.model.root.w / 2;
    this.model.root.y = this.model.root.h / 2;
    if (!this.fitted && this.canvas.clientWidth) this.fit();
  }

  fit() {
    const {w, h} = this.model.root, width = this.canvas.clientWidth, height = this.canvas.clientHeight;
    this.zoom = Math.max(MIN_ZOOM, Math.min(1, width / w, Math.max(height / h, 0.5)));
    this.x = (width - w * this.zoom) / 2;
    this.y = Math.min(8, (height - h * this.zoom) / 2);
    if (h * this.zoom > height) this.y = 8;
    this.fitted = true;
    this.draw();
  }

  // The corner of a group's contents, and the centre of an item, in the drawing's units.
  corner(group) {
    const at = group.parent ? this.centre(group) : [group.x, group.y];
    return [at[0] - group.layout.w / 2, at[1] - group.h / 2 + HEAD + PAD];
  }

  centre(item) {
    if (!item.parent) return [item.x, item.y];
    const [x, y] = this.corner(item.parent);
    return [x + item.x, y + item.y];
  }

  visible(item) {
    let found = item;
    for (let g = item.parent; g; g = g.parent) if (!g.open) found = g;
    return found;
  }

  reveal(item) {
    for (let g = item.parent; g; g = g.parent) if (!g.open) this.toggle(g, true);
    this.select(item);
    this.ready();
    const [x, y] = this.centre(item);
    this.zoom = Math.max(this.zoom, 0.7);
    this.x = this.canvas.clientWidth / 2 - x * this.zoom;
    this.y = this.canvas.clientHeight / 2 - y * this.zoom;
    this.draw();
  }

  select(item) {
    this.selected = item;
    this.page.onSelect(this, item);
    this.draw();
  }

  // Pointer and keys -----------------------------------------------------------------------------------------------------

  at(event) {
    const box = this.canvas.getBoundingClientRect();
    const x = (event.clientX - box.left - this.x) / this.zoom, y = (event.clientY - box.top - this.y) / this.zoom;
    const inside = (group, cx, cy) => {
      const hit = group.items.find(k => Math.abs(cx - k.x) <= k.w / 2 && Math.abs(cy - k.y) <= k.h / 2);
      if (!hit || hit.op !== undefined || !hit.open) return hit || (group.parent ? group : null);
      return inside(hit, cx - hit.x + hit.layout.w / 2, cy - hit.y + hit.h / 2 - HEAD - PAD);
    };
    const [cx, cy] = this.corner(this.model.root);
    return inside(this.model.root, x - cx, y - cy);
  }

  listen() {
    const canvas = this.canvas;
    let from = null, moved = false;
    canvas.addEventListener("pointerdown", e => { from = [e.clientX - this.x, e.clientY - this.y]; moved = false; canvas.setPointerCapture(e.pointerId); });
    canvas.addEventListener("pointermove", e => {
      if (!from) { this.hover(this.at(e), e); return; }
      const x = e.clientX - from[0], y = e.clientY - from[1];
      if (Math.hypot(x - this.x, y - this.y) > 3 || moved) { moved = true; this.x = x; this.y = y; this.draw(); }
    });
    canvas.addEventListener("pointerup", e => { if (from && !moved) this.select(this.at(e)); from = null; });
    canvas.addEventListener("pointerleave", () => this.hover(null, null));
    canvas.addEventListener("dblclick", e => { const item = this.at(e); if (item && item.op === undefined) this.toggleInPlace(item); });
    canvas.addEventListener("wheel", e => { e.preventDefault(); this.scroll(e); }, {passive: false});
    canvas.addEventListener("keydown", e => this.key(e));
  }

  scroll(e) {
    if (!e.ctrlKey && !e.metaKey) { this.x -= e.deltaX; this.y -= e.deltaY; this.draw(); return; }
    const box = this.canvas.getBoundingClientRect(), px = e.clientX - box.left, py = e.clientY - box.top;
    const zoom = Math.min(MAX_ZOOM, Math.max(MIN_ZOOM, this.zoom * Math.exp(-e.deltaY / 300)));
    this.x = px - (px - this.x) * zoom / this.zoom;
    this.y = py - (py - this.y) * zoom / this.zoom;
    this.zoom = zoom;
    this.draw();
  }

  key(e) {
    const item = this.selected, model = this.model;
    const near = nodes => nodes.length && this.reveal(model.itemOf[nodes[0]]);
    const actions = {
      Enter: () => item && item.op === undefined && this.toggleInPlace(item),
      Escape: () => this.select(null),
      ArrowUp: () => item && item.op !== undefined && near(model.ins[item.op]),
      ArrowDown: () => (item ? item.op !== undefined && near(model.outs[item.op]) : this.reveal(model.root.items[0])),
      p: () => item && item.parent.parent && this.reveal(item.parent),
      f: () => this.fit(),
    };
    if (!actions[e.key] || e.ctrlKey || e.metaKey) return;
    e.preventDefault();
    actions[e.key]();
  }

  hover(item, event) {
    if (item !== this.hovered) { this.hovered = item; this.draw(); }
    this.page.tip(item && event ? this.page.describe(this.model, item).map(([k, v]) => `${k}: ${v}`).join("\n") : "", event);
  }

  // Drawing --------------------------------------------------------------------------------------------------------------

  draw() {
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; this.paint(); });
  }

  paint() {
    this.ready();
    const {canvas, context: c, zoom} = this, ratio = devicePixelRatio || 1, width = canvas.clientWidth, height = canvas.clientHeight;
    if (canvas.width !== Math.round(width * ratio)) canvas.width = Math.round(width * ratio);
    if (canvas.height !== Math.round(height * ratio)) canvas.height = Math.round(height * ratio);
    const style = getComputedStyle(document.documentElement);
    this.colour = name => style.getPropertyValue(`--${name}`);
    this.view = [-this.x / zoom, -this.y / zoom, (width - this.x) / zoom, (height - this.y) / zoom];
    c.setTransform(ratio, 0, 0, ratio, 0, 0);
    c.clearRect(0, 0, width, height);
    c.setTransform(ratio * zoom, 0, 0, ratio * zoom, ratio * this.x, ratio * this.y);
    this.paintGroup(this.model.root);
    this.paintNeighbours();
    this.page.onPaint();
  }

  inView(x0, y0, x1, y1) {
    return x1 >= this.view[0] && y1 >= this.view[1] && x0 <= this.view[2] && y0 <= this.view[3];
  }

  paintGroup(group) {
    const [x, y] = this.corner(group);
    if (this.zoom > 0.06) this.paintLines(group.layout.lines, x, y);
    for (const item of group.items) {
      const left = x + item.x - item.w / 2, top = y + item.y - item.h / 2;
      if (item.h * this.zoom < 1 || !this.inView(left, top, left + item.w, top + item.h)) continue;
      this.paintBox(item, left, top);
      if (item.op === undefined && item.open) this.paintGroup(item);
    }
  }

  paintLines(lines, x, y) {
    const c = this.context;
    for (const back of [false, true]) {
      c.beginPath();
      for (const line of lines) {
        const p = line.points;
        if (line.back !== back || !this.lineInView(p, x, y)) continue;
        c.moveTo(x + p[0], y + p[1]);
        for (let i = 2; i < p.length; i += 2) curve(c, x + p[i - 2], y + p[i - 1], x + p[i], y + p[i + 1]);
      }
      c.strokeStyle = this.colour("edge");
      c.lineWidth = 1;
      c.setLineDash(back ? [4, 4] : []);
      c.stroke();
    }
    c.setLineDash([]);
  }

  lineInView(p, x, y) {
    const top = Math.min(p[1], p.at(-1)), bottom = Math.max(p[1], p.at(-1));
    return y + bottom >= this.view[1] && y + top <= this.view[3];
  }

  paintBox(item, left, top) {
    const c = this.context, isGroup = item.op === undefined;
    c.beginPath();
    c.roundRect(left, top, item.w, item.h, isGroup ? 8 : 5);
    c.fillStyle = this.fill(item);
    c.fill();
    c.strokeStyle = this.colour(item === this.selected ? "accent" : item === this.hovered ? "text" : "line");
    c.lineWidth = item === this.selected ? 3 : 1;
    c.stroke();
    const share = this.page.share(this.model, item);
    if (share > 0.002) {
      c.fillStyle = this.colour("heat");
      c.fillRect(left + 3, top + item.h - 5, (item.w - 6) * Math.min(1, share), 3);
    }
    if (this.zoom > 0.3 || (isGroup && item.w * this.zoom > 90)) this.paintText(item, left, top);
  }

  fill(item) {
    if (item.op !== undefined) {
      const node = this.model.fn.nodes[item.op], op = this.model.fn.ops[node[NODE.op]];
      if (node[NODE.state]) return this.colour(STATES[node[NODE.state]]);
      return this.colour(op === "weight" ? "weight" : op === "input" || op === "result" ? "input" : "node");
    }
    if (item.changed && !item.open) return this.colour("changed");
    if (item.kernel) return this.colour(item.open ? "open-kernel" : "kernel");
    return this.colour(!item.open ? "group" : item.depth % 2 ? "open-odd" : "open-even");
  }

  paintText(item, left, top) {
    const c = this.context, isGroup = item.op === undefined;
    const grow = isGroup && this.zoom < 0.3 ? 0.3 / this.zoom : 1;
    c.fillStyle = this.colour("text");
    c.font = `${isGroup ? "600 " : ""}${12 * grow}px ${FONT}`;
    c.textAlign = "left";
    c.fillText(this.textOf(item), left + 10, top + (isGroup ? 5 + 12 * grow : 17), item.w - 14);
    if (!isGroup || item.open || grow > 1) return;
    c.fillStyle = this.colour("muted");
    c.font = `10px ${FONT}`;
    c.fillText(this.page.total(item), left + 10, top + 31, item.w - 14);
  }

  // What the selected node reads, and what reads it, wherever that is; of a closed group the group.
  paintNeighbours() {
    const item = this.selected;
    if (!item || item.op === undefined || this.visible(item) !== item) return;
    const c = this.context, [x, y] = this.centre(item);
    for (const [nodes, up] of [[this.model.ins[item.op], true], [this.model.outs[item.op], false]]) {
      const ends = new Set(nodes.slice(0, 300).map(n => this.visible(this.model.itemOf[n])));
      c.beginPath();
      for (const end of ends) {
        const [ex, ey] = this.centre(end);
        c.moveTo(ex, ey + (up ? end.h / 2 : -end.h / 2));
        curve(c, ex, ey + (up ? end.h / 2 : -end.h / 2), x, y + (up ? -item.h / 2 : item.h / 2));
      }
      c.strokeStyle = this.colour(up ? "reads" : "read-by");
      c.lineWidth = 2 / Math.min(1, this.zoom);
      c.stroke();
    }
  }
}

function curve(c, x0, y0, x1, y1) {
  if (Math.abs(x1 - x0) < 1) { c.lineTo(x1, y1); return; }
  const middle = (y0 + y1) / 2;
  c.bezierCurveTo(x0, middle, x1, middle, x1, y1);
}
