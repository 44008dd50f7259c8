// Anatomy: which structure every byte of a file belongs to, from the whole down to a field; damage in red.
(function (S) {
  'use strict';
  const { h } = S;
  const smallEnough = 64e6; // bytes of a file that is checked unasked

  S.tab('anatomy', 'Anatomy', () => true, async function (main, params, signal) {
    const name = params.file || params.name.replace(/#[^#/]*$/, '');
    const v = { name, place: params.place, table: params.name, signal, findings: [], back: [], by: 'role', marks: [], chosen: null };
    let doc;
    try {
      doc = await S.ask('anatomy', { name }, signal);
    } catch (err) {
      if (err.class !== 'invalid') throw err;
      location.replace(S.go('files', { place: params.place || name, name })); // a directory
      return;
    }
    v.doc = doc;
    v.columns = new Map(doc.columns.map((c, i) => [c.column, i]));
    draw(v, main);
    await v.map.show(Number(params.from || 0), Number(params.to || doc.size));
    where(v);
    if (doc.size <= smallEnough || S.embedded) check(v);
    if (params.offset) pick(v, Number(params.offset));
  });

  function draw(v, main) {
    const { doc } = v;
    v.map = S.Map({
      segments: async (from, to, n) => (await S.ask('map', { name: v.name, from, to, n }, v.signal)).segments,
      colour: (s) => colour(v, s),
      marks: () => marks(v),
      chosen: (s, byte) => pick(v, byte),
      ranged: (a, b) => zoom(v, a, b),
      out: () => out(v),
      label: (s) => label(v, s),
    });
    v.legend = h('ul', { class: 'legend' });
    v.range = h('p', { class: 'range', 'aria-live': 'polite' });
    v.health = h('div', {});
    v.detail = h('section', { class: 'detail', 'aria-label': 'The chosen bytes' }, h('p', { class: 'dim' }, 'Choose bytes on the map, or a structure below.'));
    v.found = h('div', {});
    v.tree = h('section', {}, h('h2', {}, 'Structures'));
    v.overview = h('div', { class: 'overview', 'aria-hidden': 'true' }, h('i', {}));
    S.clear(main,
      h('h1', {}, S.base(v.name)),
      h('p', {}, S.bytes(doc.size) + ' (' + S.num(doc.size) + ' bytes), ' + S.plural(doc.structures, 'structure') + (doc.cut ? '; there are more, which are not shown' : '')),
      doc.problem ? h('p', { class: 'bad', role: 'alert' }, doc.problem) : null,
      v.health,
      h('div', { class: 'bar' },
        h('form', { class: 'grow field', role: 'search', onsubmit: (e) => { e.preventDefault(); search(v, e.target.q.value); } },
          h('label', {}, 'Find ', h('input', { name: 'q', type: 'search', placeholder: 'a name, 0x1f4, row 128, price = 42', 'aria-label': 'Find a name, a byte, a row, or a value' })), h('button', {}, 'Find')),
        h('label', { class: 'field' }, 'Colours by ', h('select', { onchange: (e) => { v.by = e.target.value; legend(v); v.map.draw(); } },
          h('option', { value: 'role' }, 'role'), doc.columns.length ? h('option', { value: 'column' }, 'column') : null))),
      v.found, v.overview, v.map.element, v.range, v.legend, v.detail, v.tree);
    legend(v);
    v.tree.append(branch(v, -1));
    const again = () => { legend(v); v.map.draw(); };
    document.addEventListener('stoa:theme', again);
    let width = main.clientWidth;
    const sizes = new ResizeObserver(() => {
      if (main.clientWidth !== width) { width = main.clientWidth; v.map.show(v.map.from, v.map.to); }
    });
    sizes.observe(main);
    v.signal.addEventListener('abort', () => {
      document.removeEventListener('stoa:theme', again);
      sizes.disconnect();
    });
  }

  const colour = (v, s) => (v.by === 'column' ? (s.column && v.columns.has(s.column) ? S.columnColour(v.columns.get(s.column)) : S.colourOf('other'))
    : S.colourOf(s.role));

  function label(v, s) {
    const what = s.role === 'gap' ? 'belongs to no structure' : s.role;
    const bad = v.findings.find((f) => f.severity === 'error' && f.offset < s.to && f.offset + Math.max(1, f.length) > s.from);
    return 'bytes ' + S.num(s.from) + ' to ' + S.num(s.to - 1) + ' (' + S.bytes(s.to - s.from) + '): ' + what + (s.column ? ' of ' + s.column : '') +
      (s.leaves > 1 ? ', ' + S.plural(s.leaves, 'structure') : '') + (bad ? '. Damaged: ' + bad.message : '');
  }

  function marks(v) {
    const out = v.findings.filter((f) => f.severity === 'error' && f.object === v.name && (f.offset || f.length))
      .map((f) => ({ from: f.offset, to: f.offset + Math.max(1, f.length), kind: 'bad' }));
    if (v.chosen) out.push({ from: v.chosen.offset, to: v.chosen.offset + v.chosen.length, kind: 'here' });
    return out.concat(v.marks);
  }

  function legend(v) {
    const items = v.by === 'column' ? v.doc.columns.slice(0, 24).map((c, i) => [c.column, c.bytes, S.columnColour(i)])
      : v.doc.roles.map((r) => [r.role, r.bytes, S.colourOf(r.role)]);
    S.clear(v.legend, items.map(([name, bytes, paint]) => h('li', {}, h('i', { class: 'chip', style: { background: paint } }), name + ' ',
      h('span', { class: 'dim' }, S.bytes(bytes) + ', ' + (100 * bytes / Math.max(1, v.doc.size)).toFixed(1) + ' %'))));
  }

  async function zoom(v, from, to) {
    v.back.push([v.map.from, v.map.to]);
    await v.map.show(Math.max(0, Math.floor(from)), Math.min(v.doc.size, Math.ceil(to)));
    where(v);
  }

  async function out(v) {
    const [from, to] = v.back.pop() || [0, v.doc.size];
    await v.map.show(from, to);
    where(v);
  }

  // where shows which part of the file is on the map.
  function where(v) {
    const { from, to } = v.map;
    const all = from === 0 && to >= v.doc.size;
    const i = v.overview.firstChild;
    i.style.left = 100 * from / Math.max(1, v.doc.size) + '%';
    i.style.width = Math.max(0.3, 100 * (to - from) / Math.max(1, v.doc.size)) + '%';
    S.clear(v.range, all ? 'The whole file. ' : 'Bytes ' + S.num(from) + ' to ' + S.num(to - 1) + ' (' + S.bytes(to - from) + '). ',
      all ? h('span', { class: 'dim' }, 'Drag over a part to see it larger.') : [h('button', { type: 'button', onclick: () => out(v) }, 'Out'), ' ',
        h('button', { type: 'button', onclick: () => { v.back = []; zoom(v, 0, v.doc.size); } }, 'The whole file')]);
    S.remember('anatomy', { place: v.place, name: v.table, file: v.table === v.name ? '' : v.name, from: all ? '' : from, to: all ? '' : to });
  }

  // pick shows what owns a byte: the structures from the outermost in, and the bytes around.
  async function pick(v, offset, id) {
    try {
      const { path } = await S.ask('at', id === undefined ? { name: v.name, offset } : { name: v.name, node: id }, v.signal);
      const n = path[path.length - 1];
      const from = n && n.length <= 4096 ? n.offset : offset - offset % 16;
      const doc = await S.ask('bytes', { name: v.name, offset: from, length: n ? Math.max(16, Math.min(n.length, 512)) : 256 }, v.signal);
      v.chosen = n || null;
      v.map.draw();
      detail(v, path, doc, offset);
    } catch (err) {
      if (!v.signal.aborted) S.clear(v.detail, S.problem(err));
    }
  }

  function detail(v, path, doc, offset) {
    const n = path[path.length - 1];
    const hurt = v.findings.filter((f) => n && f.object === v.name && f.offset < n.offset + n.length && f.offset + Math.max(1, f.length) > n.offset);
    const end = doc.offset + doc.hex.length / 2;
    const step = (to) => async () => {
      const more = await S.ask('bytes', { name: v.name, offset: to, length: 512 }, v.signal);
      detail(v, path, more, offset);
    };
    S.clear(v.detail,
      h('h2', {}, n ? n.name || '(part)' : 'Bytes of no structure'),
      n ? h('ol', { class: 'path', 'aria-label': 'It is part of' }, path.map((p) => h('li', {}, h('button', {
        type: 'button', class: 'plain', title: 'Show it on the whole map', onclick: () => { zoom(v, p.offset, p.offset + p.length); pick(v, p.offset, p.id); },
      }, p.name || '(part)')))) : null,
      n ? h('dl', { class: 'facts' }, n.value ? S.fact('value', n.value) : null, S.fact('bytes', S.num(n.offset) + ' to ' + S.num(n.offset + n.length - 1)),
        S.fact('size', S.bytes(n.length)), S.fact('role', n.role), n.column ? S.fact('column', n.column) : null,
        n.from !== undefined ? S.fact('rows', S.num(n.from) + (n.to !== undefined ? ' to ' + S.num(n.to - 1) : ' on')) : null) : null,
      n && n.from !== undefined && v.table && !S.embedded ? h('p', {}, h('a', { href: S.go('rows', { place: v.place, name: v.table, row: n.from }) }, 'The rows')) : null,
      n && n.says ? h('p', { class: 'says' }, n.says, ' ', h('span', { class: 'dim' }, '(' + v.doc.format + ')')) : null,
      hurt.map((f) => finding(f)),
      doc.hex || doc.size === 0 ? null : h('p', { class: 'dim' }, 'The bytes of a file of this size are not in its page.'),
      S.hex(doc, n, (x) => colour(v, x)),
      h('p', { class: 'bar' }, h('button', { type: 'button', disabled: doc.offset === 0, onclick: step(Math.max(0, doc.offset - 512)) }, 'Bytes before'),
        h('button', { type: 'button', disabled: end >= doc.size, onclick: step(end) }, 'Bytes after')));
  }

  const finding = (f) => h('p', { class: f.severity === 'error' ? 'bad' : 'dim' }, '✗ ', h('code', {}, f.code), ' ' + f.message +
    (f.from !== null && f.from !== undefined ? ' (rows ' + S.num(f.from) + ' to ' + S.num(f.to - 1) + ')' : ''));
  S.finding = finding;

  // check verifies the file and paints what is found.
  async function check(v) {
    S.clear(v.health, h('p', { class: 'dim' }, 'Checking…'));
    let last = null;
    try {
      await S.lines('verify', { name: v.name }, v.signal, (doc) => {
        if (doc.command) last = doc;
        if (!doc.code) return; // how far it is
        v.findings.push(doc);
        v.map.draw();
      });
    } catch (err) {
      if (!v.signal.aborted) S.clear(v.health, h('p', { class: 'dim' }, 'It could not be checked: ' + err.message));
      return;
    }
    const bad = v.findings.filter((f) => f.severity === 'error');
    const ok = last && last.status === 0;
    S.clear(v.health, bad.length ? h('div', { class: 'problem' }, h('strong', {}, S.plural(bad.length, 'error')),
      bad.slice(0, 10).map((f) => h('p', {}, h('button', {
        type: 'button', class: 'plain bad', onclick: () => { zoom(v, f.offset - 2 * f.length - 64, f.offset + 3 * f.length + 64); pick(v, f.offset); },
      }, f.code + ' at ' + S.num(f.offset)), ' ' + f.message, lost(v, f))), incidents(v, last))
      : h('p', { class: ok ? 'good' : 'dim' }, ok ? '✓ Nothing is wrong: structure and checksums.' : ((last && last.notes) || []).join(' ')));
    S.say(bad.length ? S.plural(bad.length, 'error') : '');
    v.map.draw();
  }

  // lost says which rows damage takes, with a way to them.
  function lost(v, f) {
    if (f.from === null || f.from === undefined) return f.lost ? ' (' + S.plural(f.lost, 'row') + ' lost)' : null;
    const text = 'rows ' + S.num(f.from) + ' to ' + S.num(f.to - 1) + (f.column ? ' of ' + f.column : '') + (f.lost ? ', ' + S.num(f.lost) + ' lost' : '');
    return [' (', S.embedded ? text : h('a', { href: S.go('rows', { place: v.place, name: v.table, row: f.from }) }, text), ')'];
  }

  // incidents are the findings by cause, where several have one.
  function incidents(v, last) {
    return ((last && last.incidents) || []).filter((i) => i.findings > 1).map((i) => h('p', { class: 'incident' }, 'One cause of ' + S.plural(i.findings, 'finding') + ': ',
      h('button', { type: 'button', class: 'plain', onclick: () => { zoom(v, i.offset - 64, i.offset + i.length + 64); pick(v, i.offset); } }, 'bytes ' + S.num(i.offset) + ' to ' + S.num(i.offset + Math.max(1, i.length) - 1)),
      ' (' + i.codes.map((c) => c.code + ' ' + S.num(c.n)).join(', ') + ')' + (i.lost ? ', ' + S.plural(i.lost, 'row') + ' or cells lost' : '')));
  }

  async function search(v, what) {
    v.marks = [];
    try {
      const r = await S.ask('search', { name: v.name, table: v.table, q: what }, v.signal);
      const { nodes, rows } = r;
      v.marks = nodes.map((n) => ({ from: n.offset, to: n.offset + n.length, kind: 'found' }));
      v.map.draw();
      S.say(S.plural(nodes.length, 'structure') + ' found');
      S.clear(v.found, S.lost(r, 'Rows of which a lost cell is searched for were not looked at.'),
        r.cut ? h('p', { class: 'bad' }, 'These are not all: more rows may pass.') : null, rows && rows.length ? h('p', {}, 'In ' + (rows.length > 1 ? 'rows ' : 'row '), rows.slice(0, 20).map((r, i) => [i ? ', ' : '',
        h('a', { href: S.go('rows', { place: v.place, name: v.table, row: r }) }, S.num(r))]), rows.length > 20 ? ' …' : '') : null,
        h('p', {}, nodes.length ? S.plural(nodes.length, 'structure') + (nodes.length === 200 ? ' or more' : '') + ':' : 'Nothing was found.'),
        h('ul', { class: 'found' }, nodes.map((n) => h('li', {}, node(v, n)))));
      if (nodes.length === 1) pick(v, nodes[0].offset, nodes[0].id);
    } catch (err) {
      if (!v.signal.aborted) S.clear(v.found, S.problem(err));
    }
  }

  const node = (v, n) => h('button', { type: 'button', class: 'plain', onclick: () => pick(v, n.offset, n.id) },
    h('i', { class: 'chip', style: { background: colour(v, n) } }), (n.name || '(part)') + (n.value ? ': ' + n.value.slice(0, 80) : ''),
    h('span', { class: 'dim' }, ' ' + S.num(n.offset) + ', ' + S.bytes(n.length)));

  // branch is the list of the parts of a node; each opens.
  function branch(v, id) {
    const list = h('ul', { class: 'tree' });
    let skip = 0;
    const more = async () => {
      const { parts } = await S.ask('parts', { name: v.name, node: id, skip, n: 200 }, v.signal);
      skip += parts.length;
      for (const n of parts) list.append(leaf(v, n));
      if (parts.length === 200) {
        const li = h('li', {}, h('button', { type: 'button', onclick: () => { li.remove(); more(); } }, 'More'));
        list.append(li);
      }
      return parts;
    };
    list.ready = more().then((parts) => {
      if (id === -1 && parts.length === 1) list.querySelector('.opener')?.click();
    }).catch(() => {});
    return list;
  }

  function leaf(v, n) {
    const li = h('li', {});
    const open = n.parts ? h('button', {
      type: 'button', class: 'opener', 'aria-expanded': 'false', 'aria-label': 'Parts of ' + (n.name || 'it'), onclick: () => {
        const was = open.getAttribute('aria-expanded') === 'true';
        open.setAttribute('aria-expanded', String(!was));
        if (was) li.querySelector('ul')?.remove();
        else li.append(branch(v, n.id));
      },
    }) : h('span', { class: 'opener' });
    li.append(open, node(v, n));
    return li;
  }
})(window.stoa);
