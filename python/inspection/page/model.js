"use strict";
// A function's nodes as a tree of groups by module path and kernel, of at most LIMIT items each; lines meet where their ends' groups part.

const LIMIT = 300;
const NODE = {op: 0, path: 1, type: 2, bytes: 3, flops: 4, label: 5, note: 6, group: 7, link: 8, state: 9}; // as data.py writes them

function buildModel(fn) {
  const root = newGroup(fn.name, "", null), groups = [];
  const used = new Set(fn.nodes.map(node => node[NODE.group])); // a path that only kernels' ops have is no group
  const byPath = fn.paths.map((path, i) => used.has(i) ? groupAt(root, path) : null);
  for (const i of fn.kernels) byPath[i].kernel = true;
  const places = placesOf(fn);
  fn.nodes.forEach((node, i) => byPath[node[NODE.group]].members.push({op: i, first: places[i]}));
  finish(root, fn, groups);
  root.open = true;
  const itemOf = new Array(fn.nodes.length);
  number(root, itemOf);
  const ins = fn.nodes.map(() => []), outs = fn.nodes.map(() => []);
  for (let e = 0; e < fn.edges.length; e += 2) {
    const to = fn.edges[e], from = to - fn.edges[e + 1]; // sources as distances: they compress better
    outs[from].push(to);
    ins[to].push(from);
    joinGroups(itemOf[from], itemOf[to]);
  }
  return {fn, root, groups, itemOf, ins, outs};
}

// Where a node stands in the program's order: a weight, which all functions list first, right above its first reader.
function placesOf(fn) {
  const places = fn.nodes.map((_, i) => i), isWeight = fn.nodes.map(node => fn.ops[node[NODE.op]] === "weight");
  for (let e = fn.edges.length - 2; e >= 0; e -= 2) {
    const from = fn.edges[e] - fn.edges[e + 1];
    if (isWeight[from]) places[from] = fn.edges[e] - 0.5;
  }
  return places;
}

function newGroup(name, path, parent) {
  return {name, path, parent, kids: new Map(), members: [], kernel: false, open: false, edges: new Map(), layout: null};
}

function groupAt(root, path) {
  let group = root;
  for (const part of path ? path.split(".") : []) {
    if (!group.kids.has(part)) group.kids.set(part, newGroup(part, group.path ? `${group.path}.${part}` : part, group));
    group = group.kids.get(part);
  }
  return group;
}

// Bottom up: items in program order, sums, and sections where there are too many.
function finish(group, fn, groups) {
  for (const kid of group.kids.values()) finish(kid, fn, groups);
  group.items = [...group.kids.values(), ...group.members].sort((a, b) => a.first - b.first);
  delete group.kids;
  delete group.members;
  while (group.items.length > LIMIT) group.items = sections(group, fn, groups);
  sum(group, fn);
  for (const item of group.items) item.parent = group;
  groups.push(group);
}

function sections(group, fn, groups) {
  const size = Math.max(LIMIT / 2, Math.ceil(group.items.length / LIMIT)), parts = [];
  for (let i = 0; i < group.items.length; i += size) {
    const part = newGroup("", group.path, group);
    part.items = group.items.slice(i, i + size);
    part.name = `${nameOf(part.items[0], fn)} … ${nameOf(part.items.at(-1), fn)}`;
    part.section = true;
    sum(part, fn);
    for (const item of part.items) item.parent = part;
    groups.push(part);
    parts.push(part);
  }
  return parts;
}

function nameOf(item, fn) {
  if (item.op === undefined) return item.name;
  const node = fn.nodes[item.op];
  return node[NODE.label] || fn.ops[node[NODE.op]];
}

function sum(group, fn) {
  Object.assign(group, {count: 0, bytes: 0, flops: 0, changed: 0, first: Infinity});
  for (const item of group.items) {
    const node = item.op === undefined ? null : fn.nodes[item.op];
    group.first = Math.min(group.first, item.first);
    group.count += node ? 1 : item.count;
    group.bytes += node ? node[NODE.bytes] : item.bytes;
    group.flops += node ? node[NODE.flops] : item.flops;
    group.changed += node ? +(node[NODE.state] > 0) : item.changed;
  }
}

function number(group, itemOf, depth = 0) {
  group.depth = depth;
  group.items.forEach((item, i) => {
    item.index = i;
    item.depth = depth + 1;
    if (item.op === undefined) number(item, itemOf, depth + 1);
    else itemOf[item.op] = item;
  });
}

function joinGroups(a, b) {
  while (a.depth > b.depth) a = a.parent;
  while (b.depth > a.depth) b = b.parent;
  while (a.parent !== b.parent) { a = a.parent; b = b.parent; }
  if (a !== b) a.parent.edges.set(`${a.index} ${b.index}`, [a.index, b.index]);
}

// Raw weights that a node is computed from.
function sourcesOf(model, start) {
  const seen = new Set([start]), pending = [start], found = [];
  while (pending.length) {
    const node = pending.pop();
    if (!model.ins[node].length && model.fn.ops[model.fn.nodes[node][NODE.op]] === "weight") found.push(node);
    for (const other of model.ins[node]) if (!seen.has(other)) { seen.add(other); pending.push(other); }
  }
  return found.sort((a, b) => a - b);
}
