"use strict";
// Layered layout of one open group (Sugiyama et al., 1981): items {w, h} in program order and edges [from, to] by index.
// Gives each item x, y (its centre); returns {w, h, lines: [{from, to, points: [x, y, ...], back}]}.

const GAP = {x: 14, y: 28};
const LONGEST = 24; // ranks that a line is routed through; a longer one is drawn as one curve

function layered(items, edges) {
  const forward = edges.filter(([a, b]) => a < b);
  const rank = ranksOf(items.length, forward);
  const net = cellsOf(items, forward, rank);
  orderRows(net.rows);
  placeRows(net.rows);
  const bottom = setHeights(items, net.rows);
  const size = placeLone(items, net, bottom);
  return {...size, lines: linesOf(items, edges, net, size.shift)};
}

// Longest paths; an item that nothing feeds stands right above its first reader.
function ranksOf(count, edges) {
  const rank = new Int32Array(count), first = new Int32Array(count).fill(-1), fed = new Uint8Array(count);
  const outs = Array.from({length: count}, () => []);
  for (const [a, b] of edges) { outs[a].push(b); fed[b] = 1; }
  for (let i = 0; i < count; i++) for (const j of outs[i]) rank[j] = Math.max(rank[j], rank[i] + 1);
  for (let i = 0; i < count; i++) for (const j of outs[i]) if (first[i] < 0 || rank[j] < first[i]) first[i] = rank[j];
  for (let i = 0; i < count; i++) if (!fed[i] && first[i] > 0) rank[i] = first[i] - 1;
  return rank;
}

// A row of cells for each rank; a cell is an item, or a bend of a line that passes this rank.
function cellsOf(items, edges, rank) {
  const used = new Uint8Array(items.length), rows = [], cellOf = new Array(items.length), routes = new Map();
  for (const [a, b] of edges) used[a] = used[b] = 1;
  const add = (r, width, item) => {
    while (rows.length <= r) rows.push([]);
    const cell = {width, item, rank: r, above: [], below: [], x: 0, y: 0, place: rows[r].length, wanted: 0};
    rows[r].push(cell);
    return cell;
  };
  items.forEach((item, i) => { if (used[i]) cellOf[i] = add(rank[i], item.w, i); });
  const join = (upper, lower) => { upper.below.push(lower); lower.above.push(upper); };
  edges.forEach(([a, b]) => {
    if (rank[b] - rank[a] > LONGEST) return;
    const route = [cellOf[a]];
    for (let r = rank[a] + 1; r < rank[b]; r++) { route.push(add(r, 4, -1)); join(route.at(-2), route.at(-1)); }
    join(route.at(-1), cellOf[b]);
    route.push(cellOf[b]);
    routes.set(`${a} ${b}`, route);
  });
  return {rows, routes, lone: items.map((_, i) => i).filter(i => !used[i])};
}

// Few crossings: barycentres of the row above, then below; the best order seen is kept.
function orderRows(rows) {
  let best = Infinity, kept = null;
  for (let round = 0; round < 10 && best > 0; round++) {
    const down = round % 2 === 0, order = down ? rows : [...rows].reverse();
    for (const row of order) sweep(row, down ? "above" : "below");
    const count = rows.reduce((sum, row) => sum + crossings(row), 0);
    if (count < best) { best = count; kept = rows.map(row => [...row]); }
  }
  if (!kept) return;
  kept.forEach((row, r) => { rows[r] = row; row.forEach((cell, k) => { cell.place = k; }); });
}

function sweep(row, side) {
  for (const cell of row) cell.wanted = cell[side].length ? mean(cell[side], "place") : cell.place;
  row.sort((p, q) => p.wanted - q.wanted || p.place - q.place);
  row.forEach((cell, k) => { cell.place = k; });
}

function mean(cells, key) {
  let sum = 0;
  for (const cell of cells) sum += cell[key];
  return sum / cells.length;
}

// Inversions among the lines to the next row, counted with a Fenwick tree.
function crossings(row) {
  const ends = row.flatMap(cell => cell.below.map(c => c.place).sort((p, q) => p - q));
  const size = ends.reduce((m, e) => Math.max(m, e), 0) + 1, tree = new Int32Array(size + 1);
  let count = 0;
  for (let i = ends.length - 1; i >= 0; i--) {
    for (let k = ends[i]; k > 0; k -= k & -k) count += tree[k];
    for (let k = ends[i] + 1; k <= size; k += k & -k) tree[k]++;
  }
  return count;
}

// Near to the means of their neighbours, without overlap: least squares by pooling adjacent violators.
function placeRows(rows) {
  for (const row of rows) { for (const cell of row) cell.wanted = 0; spread(row); }
  for (let round = 0; round < 8; round++) {
    const down = round % 2 === 0, order = down ? rows : [...rows].reverse();
    for (const row of order) {
      for (const cell of row) {
        const near = round > 5 ? [...cell.above, ...cell.below] : down ? cell.above : cell.below;
        cell.wanted = near.length ? mean(near, "x") : cell.x;
      }
      spread(row);
    }
  }
}

function spread(row) {
  const offsets = [], pools = [];
  row.forEach((cell, k) => {
    offsets.push(k ? offsets[k - 1] + (row[k - 1].width + cell.width) / 2 + GAP.x : 0);
    let pool = {sum: cell.wanted - offsets[k], count: 1};
    while (pools.length && pools.at(-1).sum / pools.at(-1).count > pool.sum / pool.count) {
      const other = pools.pop();
      pool = {sum: pool.sum + other.sum, count: pool.count + other.count};
    }
    pools.push(pool);
  });
  let k = 0;
  for (const pool of pools) for (let i = 0; i < pool.count; i++, k++) row[k].x = pool.sum / pool.count + offsets[k];
}

function setHeights(items, rows) {
  let y = 0;
  for (const row of rows) {
    const height = row.reduce((h, cell) => cell.item < 0 ? h : Math.max(h, items[cell.item].h), 10);
    for (const cell of row) { cell.y = y + height / 2; cell.height = height; }
    y += height + GAP.y;
  }
  return Math.max(0, y - GAP.y);
}

// Items without a line go below the others, in rows, about as wide as high.
function placeLone(items, {rows, lone}, bottom) {
  let left = 0, right = 0;
  for (const row of rows) for (const cell of row) {
    left = Math.min(left, cell.x - cell.width / 2);
    right = Math.max(right, cell.x + cell.width / 2);
    if (cell.item >= 0) { items[cell.item].x = cell.x; items[cell.item].y = cell.y; }
  }
  const area = lone.reduce((sum, i) => sum + (items[i].w + GAP.x) * (items[i].h + GAP.x), 0);
  const width = Math.max(right - left, 1.3 * Math.sqrt(area));
  let x = left, y = bottom ? bottom + GAP.y : 0, height = 0;
  for (const i of lone) {
    const item = items[i];
    if (x > left && x + item.w > left + width) { x = left; y += height + GAP.x; height = 0; }
    item.x = x + item.w / 2;
    item.y = y + item.h / 2;
    x += item.w + GAP.x;
    height = Math.max(height, item.h);
    right = Math.max(right, x - GAP.x);
  }
  for (const item of items) item.x -= left;
  return {w: right - left, h: lone.length ? y + height : bottom, shift: left};
}

function linesOf(items, edges, {routes}, shift) {
  return edges.map(([from, to]) => {
    const a = items[from], b = items[to], route = routes.get(`${from} ${to}`);
    if (!route) return {from, to, points: [a.x, a.y + a.h / 2, b.x, b.y - b.h / 2], back: true};
    const points = route.flatMap((cell, k) => {
      const x = cell.x - shift;
      if (k === 0) return [x, a.y + a.h / 2];
      if (k === route.length - 1) return [x, b.y - b.h / 2];
      return [x, cell.y - cell.height / 2, x, cell.y + cell.height / 2];
    });
    return {from, to, points, back: false};
  });
}
