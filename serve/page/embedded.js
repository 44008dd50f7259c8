// The page of one file: what the server would answer comes from the page itself.
(function (S) {
  'use strict';
  const doc = JSON.parse(document.getElementById('file').textContent);
  const bytes = doc.bytes ? Uint8Array.from(atob(doc.bytes), (c) => c.charCodeAt(0)) : null;
  const { nodes, anatomy, leaves } = doc; // leaves: [from, to, node], a partition of the bytes

  const plain = (name) => name.replace(/\[\d+\]/g, '[]').replace(/\(.*\)/, '()');
  const explained = (all) => all.map((n) => ({ ...n, says: doc.words[plain(n.name)] }));

  const of = (l) => (l[2] < 0 ? { role: anatomy.problem || anatomy.cut ? 'other' : 'gap', column: '' } : nodes[l[2]]);
  // first is the index of the leaf that has a byte, or of the first one after it.
  function first(byte) {
    let lo = 0, hi = leaves.length;
    while (lo < hi) {
      const k = (lo + hi) >> 1;
      if (leaves[k][1] > byte) hi = k;
      else lo = k + 1;
    }
    return lo;
  }
  const segment = (l, from, to) => ({ from: Math.max(l[0], from), to: Math.min(l[1], to), role: of(l).role, column: of(l).column, node: l[2], leaves: 1 });

  // map merges leaves that are too small to be drawn apart: the one with most bytes gives the colour, and a gap always does.
  function map(from, to, n) {
    const some = [];
    for (let k = first(from); k < leaves.length && leaves[k][0] < to; k++) some.push(leaves[k]);
    if (some.length <= n) return some.map((l) => segment(l, from, to));
    const out = [];
    for (let k = 0; k < some.length;) {
      const end = from + (to - from) * Math.min(out.length + 1, n) / n;
      const s = segment(some[k], from, to);
      let most = s.to - s.from;
      for (k++; k < some.length && some[k][1] <= end; k++) {
        const x = segment(some[k], from, to);
        if (s.role !== 'gap' && (x.role === 'gap' || x.to - x.from > most)) {
          most = x.to - x.from;
          s.role = x.role;
          s.column = x.column;
        }
        s.to = x.to;
        s.node = -1;
        s.leaves++;
      }
      out.push(s);
    }
    return out;
  }

  function path(id) {
    const out = [];
    for (; id >= 0; id = nodes[id].parent) out.unshift(nodes[id]);
    return out;
  }

  function at(byte) {
    const l = leaves[first(byte)];
    return l && l[0] <= byte && l[2] >= 0 ? path(l[2]) : [];
  }

  function search(what) {
    const q = what.trim().toLowerCase();
    const row = /^row\s+(\d+)$/.exec(q);
    if (row) return nodes.filter((n) => n.from !== undefined && n.to !== undefined && n.from <= row[1] && row[1] < n.to && (!n.parts || n.role === 'page')).slice(0, 200);
    if (/^(0x[0-9a-f]+|\d+)$/.test(q)) return at(Number(q)).slice(-1);
    return nodes.filter((n) => n.name.toLowerCase().includes(q) || (n.value || '').toLowerCase().includes(q) || (n.column || '').toLowerCase() === q).slice(0, 200);
  }

  S.embedded = async function (what, p) {
    switch (what) {
      case 'anatomy': return anatomy;
      case 'map': return { segments: map(p.from, p.to, p.n) };
      case 'at': return { path: explained(p.node !== undefined ? path(p.node) : at(p.offset)) };
      case 'parts': return { parts: nodes.filter((n) => n.parent === p.node).slice(p.skip || 0, (p.skip || 0) + p.n) };
      case 'search': return { nodes: search(p.q) };
      case 'bytes': {
        const end = Math.min(anatomy.size, p.offset + p.length);
        const hex = bytes ? [...bytes.subarray(p.offset, end)].map((b) => b.toString(16).padStart(2, '0')).join('') : '';
        const owners = map(p.offset, end, Infinity).filter((s) => s.node >= 0).map((s) => nodes[s.node]);
        return { offset: p.offset, size: anatomy.size, hex, owners: explained(owners) };
      }
    }
    throw new Error('this page has no ' + what);
  };

  S.lines = async function (what, p, signal, each) {
    for (const f of doc.findings) each(f);
    each({ command: 'stoa verify ' + anatomy.object, status: doc.findings.some((f) => f.severity === 'error') ? 3 : 0, notes: [] });
  };

  S.theme();
  S.remember = () => {};
  const main = document.getElementById('main');
  S.views.anatomy(main, { name: anatomy.object }, new AbortController().signal).catch((err) => S.clear(main, S.problem(err)));
})(window.stoa);
