// Table: columns and what they take, how it is sorted and divided, what the file says of itself.
(function (S) {
  'use strict';
  const { h } = S;

  S.tab('table', 'Table', () => true, async function (main, params, signal) {
    const { name, at } = params;
    const [meta, schema] = await Promise.all([S.command('meta', { name, at }, signal), S.command('schema', { name, at }, signal)]);
    const past = h('div', {});
    const sources = meta.doc || [];
    const sizes = h('section', {}, h('h2', {}, 'What the columns take'),
      h('p', { class: 'wait' }, 'Reading every page…'));
    const figures = h('dl', { class: 'facts' });
    const show = (rows, bytes) => S.clear(figures, S.fact('format', [...new Set(sources.map((s) => s.format))].join(', ')),
      S.fact('rows', S.num(rows)), S.fact('columns', S.num(columns(schema.doc).length)),
      S.fact('size', S.bytes(bytes)), S.fact('files', S.num(sources.length)));
    show(sum(sources, 'rows'), sum(sources, 'bytes'));
    S.clear(main,
      h('h1', {}, S.base(name)), figures,
      sources.length === 0 ? (meta.notes || []).map((n) => h('p', { class: 'bad' }, n)) : null,
      past, sizes,
      h('section', {}, h('h2', {}, 'Columns'), schemaTable(schema.doc)),
      sources.slice(0, 20).map((s) => h('section', {}, h('h2', {}, 'What ' + S.base(s.name) + ' says of itself'),
        facts(s.facts))),
      S.said(schema));
    S.moments(past, params, sources, signal).catch(() => {});
    if (sources.length) complete(params, sources, show, signal).catch(() => {});
    stats(sizes, name, at, signal).catch((err) => {
      if (!signal.aborted) S.clear(sizes, h('h2', {}, 'What the columns take'), S.problem(err));
    });
  });

  const sum = (docs, key) => (docs.some((d) => d[key] === null || d[key] === undefined) ? null
    : docs.reduce((n, d) => n + d[key], 0));

  // complete counts the rows and bytes of a table that does not say how many it has. Those of a damaged one stay unknown.
  async function complete({ name, at }, sources, show, signal) {
    let rows = sum(sources, 'rows'), bytes = sum(sources, 'bytes');
    if (bytes === null && !at) {
      bytes = sum((await S.command('ls', { name }, signal)).doc || [{}], 'bytes');
      if (!signal.aborted) show(rows, bytes);
    }
    if (rows === null) {
      const r = await S.ask('rows', { name, at, n: 1 }, signal);
      if (!signal.aborted && !(r.recovered || r.lost || r.lost_more || r.noticed)) show(r.total, bytes);
    }
  }

  function columns(doc) {
    const out = [];
    const walk = (fields, depth) => {
      for (const f of fields || []) {
        out.push({ ...f, depth });
        walk(f.children || f.fields, depth + 1);
      }
    };
    walk(doc && doc.fields, 0);
    return out;
  }

  function schemaTable(doc) {
    return S.table('Columns', [{ title: 'column' }, { title: 'type' }, { title: 'null' }, { title: 'says the file' }],
      columns(doc).map((f) => [h('span', { class: 'deep' + Math.min(f.depth, 5) }, f.name),
        typeText(f.type), f.nullable ? 'null' : 'not null',
        Object.entries(f.metadata || {}).map(([k, v]) => k.replace('stoa.', '') + '=' + cut(v, 60)).join(' ')]));
  }

  const typeText = (t) => (typeof t === 'string' ? t : JSON.stringify(t));
  const cut = (s, n) => (s.length > n ? s.slice(0, n - 1) + '…' : s);

  function facts(doc) {
    const rows = Object.entries(doc || {});
    return S.table('Facts', [{ title: 'fact' }, { title: 'value' }], rows.map(([k, v]) => [k, cut(String(v), 300)]));
  }

  async function stats(at, name, moment, signal) {
    const result = await S.command('stats', { name, at: moment }, signal);
    const docs = (result.doc || []).filter((d) => !d.sum);
    if (signal.aborted) return;
    const most = Math.max(1, ...docs.map((d) => d.stored_bytes || 0));
    S.clear(at, h('h2', {}, 'What the columns take'),
      treemap(docs),
      S.table('Statistics', [{ title: 'column' }, { title: 'stored', right: true }, { title: 'compared with the largest', quiet: true },
        { title: 'raw', right: true }, { title: 'encoding' }, { title: 'codec' }, { title: 'blocks', right: true },
        { title: 'nulls', right: true }, { title: 'dictionary', right: true }, { title: 'min' }, { title: 'max' }],
      docs.map((d) => [d.column, S.bytes(d.stored_bytes),
        h('span', { class: 'bar' }, h('i', { style: { width: 100 * (d.stored_bytes || 0) / most + '%' } })),
        S.bytes(d.raw_bytes), encodings(d), d.codec || '', S.num(d.blocks), nulls(d), d.dictionary ? S.num(d.dictionary) : '',
        cut(d.min ?? '', 30), cut(d.max ?? '', 30)])),
      S.said(result));
  }

  // treemap has an area for each column, or for each encoding if the pages of a column have several; its colour is that
  // of the encoding.
  function treemap(docs) {
    const kinds = [...new Set(docs.flatMap((d) => (parts(d).map((p) => p.encoding))))];
    const items = docs.filter((d) => d.stored_bytes > 0).flatMap((d) => parts(d).map((p) => ({
      name: d.column, more: p.encoding, size: d.stored_bytes * p.share, kind: 'c' + (kinds.indexOf(p.encoding) % 12),
    })));
    return h('div', {}, S.treemap(items), h('ul', { class: 'legend' }, kinds.filter(Boolean).map((k) => h('li', {},
      h('i', { class: 'chip', style: { background: S.columnColour(kinds.indexOf(k)) } }), k))));
  }

  function parts(d) {
    const all = d.encodings && d.encodings.length > 1 ? d.encodings : [{ encoding: d.encoding || '', pages: 1 }];
    const pages = all.reduce((n, e) => n + e.pages, 0) || 1;
    return all.map((e) => ({ encoding: e.encoding, share: e.pages / pages }));
  }

  function encodings(d) {
    if (!d.encodings || d.encodings.length < 2) return d.encoding || '';
    return d.encodings.map((e) => e.encoding + ' ' + S.num(e.pages)).join(', ');
  }

  function nulls(d) {
    if (!d.nulls) return d.nulls === 0 ? 'none' : '';
    const share = 100 * d.nulls / Math.max(1, d.rows);
    return [S.num(d.nulls) + ' (' + share.toFixed(1) + ' %)', h('span', { class: 'bar nulls' }, h('i', { style: { width: share + '%' } }))];
  }
})(window.stoa);
