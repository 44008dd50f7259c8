// Explain: what a scan reads of each file, what it skips, and why.
(function (S) {
  'use strict';
  const { h } = S;

  S.tab('explain', 'Explain', () => true, async function (main, params, signal) {
    const where = h('input', { type: 'text', name: 'where', value: params.where || '', spellcheck: 'false', autocomplete: 'off', placeholder: 'id < 100', 'aria-label': 'Filter' });
    const columns = h('input', { type: 'text', value: params.columns || '', spellcheck: 'false', placeholder: 'all', 'aria-label': 'Columns, separated by commas' });
    const error = h('div', { role: 'alert', class: 'at-error' });
    const out = h('div', {});
    const form = h('form', {
      class: 'bar', onsubmit: (e) => {
        e.preventDefault();
        location.hash = S.go('explain', { place: params.place, name: params.name, at: params.at, where: where.value.trim() || 'true', columns: columns.value.trim() });
      },
    }, h('label', { class: 'field grow' }, 'Rows where ', where), h('label', { class: 'field' }, 'columns ', columns), h('button', {}, 'Explain'));
    S.clear(main, h('h1', {}, S.base(params.name)), form, error, out);
    if (!params.where) {
      out.append(h('p', { class: 'dim' }, 'Type a predicate: the scan is run, and what it reads is drawn on the map of each file.'));
      return;
    }
    S.clear(out, h('p', { class: 'wait' }, 'Reading…'));
    const q = { name: params.name, where: params.where === 'true' ? '' : params.where, columns: params.columns, at: params.at };
    try {
      const [plan, reads] = await Promise.all([S.command('explain', { ...q, analyze: 'true' }, signal), S.ask('reads', q, signal)]);
      const maps = h('section', {}, h('h2', {}, 'On the map'));
      S.clear(out, S.lost(reads, 'Rows of which the filter needs a lost cell are not counted.'), summary(reads), levels(plan), maps);
      await draw(maps, reads, params, signal);
    } catch (err) {
      S.clear(out);
      if (!signal.aborted) {
        S.clear(error, err.at !== undefined ? h('pre', { tabindex: '0' }, params.where + '\n' + ' '.repeat(err.at) + '^ ' + err.message.replace(/^invalid: /, '').split('\n')[0]) : S.problem(err));
      }
    }
  });

  const sum = (runs) => runs.reduce((n, [a, b]) => n + b - a, 0);

  function summary(r) {
    const size = r.files.reduce((n, f) => n + f.size, 0);
    const read = r.files.reduce((n, f) => n + sum(f.read), 0);
    const opened = r.files.reduce((n, f) => n + sum(f.opened), 0);
    return h('dl', { class: 'facts' }, S.fact('rows', S.num(r.rows) + (r.ended ? '' : ' until it was stopped')), S.fact('read by the scan', S.bytes(read) + ' of ' + S.bytes(size)),
      S.fact('before, to open', S.bytes(opened)), S.fact('time', r.seconds.toFixed(3) + ' s'), S.fact('files', S.num(r.files.length) + (r.cut ? ' and more' : '')));
  }

  function levels(result) {
    const doc = result.doc;
    if (!doc) return (result.notes || []).map((n) => h('p', { class: 'bad' }, n));
    const why = (list) => (list || []).map((s) => s.why + ': ' + S.num(s.n)).join('; ');
    return [S.table('What the scan considers', [{ title: 'level' }, { title: 'column' }, { title: 'considered', right: true }, { title: 'read', right: true },
      { title: 'bytes', right: true }, { title: 'of', right: true }, { title: 'skipped, and why' }, { title: 'filtered by' }],
    doc.levels.map((l) => [l.level, (l.column || '') + (l.in_filter ? ' (filter)' : ''), S.num(l.considered), S.num(l.read), S.bytes(l.bytes), S.bytes(l.of_bytes), why(l.skipped), why(l.used)])),
    S.said(result)];
  }

  async function draw(at, r, params, signal) {
    if (r.files.length === 0) at.append(h('p', { class: 'dim' }, 'No file was read.'));
    at.append(h('p', { class: 'dim' }, 'What was skipped is faded.'));
    for (const f of r.files.slice(0, 12)) {
      const runs = [...f.read, ...f.opened].sort((a, b) => a[0] - b[0]);
      const marks = [];
      let end = 0;
      for (const [a, b] of runs) {
        if (a > end) marks.push({ from: end, to: a, kind: 'skipped' });
        end = Math.max(end, b);
      }
      if (end < f.size) marks.push({ from: end, to: f.size, kind: 'skipped' });
      const skipped = (s) => marks.some((k) => k.from <= s.from && s.to <= k.to);
      const map = S.Map({
        lines: 4,
        segments: async (from, to, n) => (await S.ask('map', { name: f.name, from, to, n }, signal)).segments.flatMap((s) => split(s, marks)),
        colour: (s) => S.colourOf(s.role), marks: () => marks,
        chosen: (s, byte) => { location.hash = S.go('anatomy', { place: params.place, name: params.name, file: f.name, offset: byte }); },
        ranged: (a, b) => map.show(a, b), out: () => map.show(0, f.size),
        label: (s) => 'bytes ' + S.num(s.from) + ' to ' + S.num(s.to - 1) + ': ' + s.role + (s.column ? ' of ' + s.column : '') + (skipped(s) ? ', skipped' : ', read'),
      });
      at.append(h('h3', {}, h('a', { href: S.go('anatomy', { place: params.place, name: params.name, file: f.name }) }, S.base(f.name)), ' ',
        h('small', {}, S.bytes(sum(f.read)) + ' of ' + S.bytes(f.size) + ' read')), map.element);
      try {
        await map.show(0, f.size);
      } catch (err) {
        if (signal.aborted) return;
        map.element.replaceWith(h('p', { class: 'dim' }, 'Its anatomy is not known: ' + err.message));
      }
    }
  }

  // split cuts a segment where reading begins or ends, so that each part is wholly read or skipped.
  function split(s, marks) {
    const cuts = [s.from, s.to];
    for (const k of marks) for (const x of [k.from, k.to]) if (x > s.from && x < s.to) cuts.push(x);
    cuts.sort((a, b) => a - b);
    return cuts.slice(1).map((to, i) => ({ ...s, from: cuts[i], to }));
  }
})(window.stoa);
