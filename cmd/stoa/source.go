package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa"
	"stoa/format"
	"stoa/store"
)

// sourceFlags say how sources are opened.
type sourceFlags struct {
	from     string
	opts     []string
	noVerify bool
	maxPage  string // --max-page
	maxMeta  string // --max-metadata
	memory   string // --memory, where the verb has no such flag of its own
	limits   format.Limits

	words   []*wordFlag
	changed func(flag string) bool
	own     pflag.Value // of a --memory that the verb has for rows; nil: it has none

	verifies bool // the verb is there to compare checksums
}

// wordFlag is a flag of its own for a reading option that is often wanted: --at TIME is --source-opt at=TIME.
type wordFlag struct {
	flag, key, value string // value: what the flag without one means
	usage            string
	given            string
}

// newWordFlags are the flags for reading options. Which formats have the option is found out when a source is opened.
func newWordFlags() []*wordFlag {
	return []*wordFlag{
		{flag: "at", key: "at", usage: "read the table as it was at `TIME`: RFC 3339, or an integer in the " +
			"format's own count (Kudu: a hybrid time)"},
		{flag: "no-wal", key: "wal", value: "false", usage: "leave out what is only in the write-ahead log"},
		{flag: "tablet", key: "tablet", usage: "read only the tablet with this `ID`"},
		{flag: "partial", key: "partial", value: "true", usage: "a table of which parts are missing is no error " +
			"(else it is read, but told, with status 3); and what there is is read where history does not reach " +
			"back to --at; nor is an Arrow stream without end mark"},
		{flag: "live", key: "live", value: "true", usage: "read a directory although a server runs on it"},
		{flag: "wal-dir", key: "wal-dir", usage: "the `DIR` that holds Kudu's wals/, instead of looking for it"},
		{flag: "data-dirs", key: "data-dirs", usage: "the `DIRS` that hold Kudu's data/, separated by commas"},
		{flag: "meta-dir", key: "meta-dir",
			usage: "the `DIR` that holds Kudu's tablet-meta/, instead of looking for it"},
		{flag: "segment", key: "segment",
			usage: "read only the segment with this `N` (also one that does not count), or several: N,N"},
		{flag: "segments", key: "segments",
			usage: "read these segments, `N,N…`; all: every one whose files are there, also compacted and deleted ones"},
		{flag: "bucket", key: "bucket", usage: "read only bucket `N` of a bucketed table"},
		{flag: "carbon-properties", key: "properties", usage: "CarbonData's settings are those of this " +
			"carbon.properties `FILE`; a path #TABLE is a table of its store"},
		{flag: "key-file", key: "key-file",
			usage: "the keys of encrypted Parquet are in `FILE`: lines footer KEY, column PATH KEY, key ID KEY"},
		{flag: "schema", key: "schema", usage: "read with the schema in `FILE` (as schema -f json prints it; of " +
			"Parquet and RedFile: another whole file with the same columns), where the source has lost its own " +
			"or, as text, has none (there also itself: \"id: int64, …\")"},
	}
}

func (f *sourceFlags) register(a *app, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.from, "from", "", "read the sources as `FORMAT` instead of finding out (stoa formats lists them)")
	fl.StringArrayVar(&f.opts, "source-opt", nil,
		"set a reading option of the source's format, `KEY=VALUE` (stoa formats NAME lists them); repeatable")
	if !f.verifies {
		fl.BoolVar(&f.noVerify, "no-verify", false, "do not compare checksums")
	}
	fl.StringVar(&f.maxPage, "max-page", "", "refuse pages of more than `SIZE` when decoded (default 1GiB)")
	fl.StringVar(&f.maxMeta, "max-metadata", "", "refuse metadata of more than `SIZE` (default 256MiB)")
	fl.Int64Var(&f.limits.Fields, "max-fields", 0,
		"refuse sources that have, and texts whose rows have, more than `N` fields, nested ones counted (default 65536)")
	fl.Int64Var(&f.limits.Depth, "max-depth", 0,
		"refuse sources with more than `N` lists, maps and structs in each other (default 64)")
	if own := fl.Lookup("memory"); own != nil {
		own.Usage += "; opening a source may take as much (without it 1GiB)"
		f.own = own.Value
	} else {
		fl.StringVar(&f.memory, "memory", "",
			"refuse sources that take more than `SIZE` of memory to open, or to recover their metadata (default 1GiB)")
	}
	f.changed = fl.Changed
	for _, w := range newWordFlags() {
		if fl.Lookup(w.flag) != nil { // the verb has another use for the word
			continue
		}
		f.words = append(f.words, w)
		if w.value != "" {
			fl.Bool(w.flag, false, w.usage)
		} else {
			fl.StringVar(&w.given, w.flag, "", w.usage)
		}
	}
	complete(cmd, "from", a.formatNames)
}

// options are what the flags mean to the library, for sources at paths. Paths that begin with # are completed
// in place: they are tables of the CarbonData store that --carbon-properties names.
func (f *sourceFlags) options(ctx context.Context, a *app, paths []string) (stoa.OpenOptions, error) {
	opts, err := keyValues("--source-opt", f.opts)
	if err != nil {
		return stoa.OpenOptions{}, err
	}
	if f.from != "" && a.format(f.from) == nil {
		return stoa.OpenOptions{}, &useError{"--from: there is no format \"" + f.from + "\"",
			"the formats are " + strings.Join(a.formatNames(), ", ")}
	}
	o := stoa.OpenOptions{Formats: a.formats, From: f.from, NoVerify: f.noVerify, Tree: tree{a: a}}
	straighten(paths)
	if err := f.inStore(ctx, a.formats, paths, o.Tree); err != nil {
		return o, err
	}
	a.reads(paths...)
	if o.Limits, err = f.allLimits(); err != nil {
		return o, err
	}
	for _, w := range f.words {
		if !f.changed(w.flag) {
			continue
		}
		if opts == nil {
			opts = map[string]string{}
		}
		if _, ok := opts[w.key]; ok {
			return o, wrongUse("--%s and --source-opt %s=… say the same thing", w.flag, w.key)
		}
		if err := w.known(ctx, a, paths, o); err != nil {
			return o, err
		}
		opts[w.key] = cmp.Or(w.value, w.given)
		switch w.key {
		case "wal-dir", "meta-dir", "data-dirs":
			a.reads(strings.Split(w.given, ",")...)
		case "schema":
			a.reads(w.given) // texts get what is in it
			if opts[w.key], err = schemaOf(ctx, w.given, paths, o); err != nil {
				return o, err
			}
		}
	}
	o.Opts = opts
	return o, nil
}

// straighten replaces, in place, paths with .. behind a symbolic link.
func straighten(paths []string) {
	for i, p := range paths {
		name := withoutTable(p)
		paths[i] = store.Local{}.Straight(name) + p[len(name):]
	}
}

// mostSchema is how long a schema in a file may be.
const mostSchema = 16 << 20

// schemaOf is what --schema means to the format of the sources: of texts, which have a schema as an option's
// value, what is in the file, or the value itself if no file has that name; else the file's name.
func schemaOf(ctx context.Context, given string, paths []string, o stoa.OpenOptions) (string, error) {
	for _, p := range paths {
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: withoutTable(p)}, o)
		if err != nil || f.Name != "jsonl" && f.Name != "csv" && f.Name != "tsv" {
			continue
		}
		st, err := os.Stat(given)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.Contains(given, ":"): // name: type
			return given, nil
		case err != nil:
			return "", fmt.Errorf("--schema: %w", err)
		case st.Size() > mostSchema:
			return "", wrongUse("--schema %s: %d bytes are no schema", given, st.Size())
		}
		b, err := os.ReadFile(given)
		return strings.TrimSpace(string(b)), err
	}
	return given, nil
}

// storePath stands for the CarbonData store that the settings name; #TABLE for a table of it.
const storePath = "#"

// inStore puts the store's place before paths that begin with #, unless there are files of that name.
func (f *sourceFlags) inStore(ctx context.Context, formats []format.Format, paths []string, tr store.Tree) error {
	for i, p := range paths {
		if !strings.HasPrefix(p, storePath) {
			continue
		}
		if _, err := os.Lstat(p); err == nil {
			continue
		}
		place, err := stoa.Home(ctx, stoa.OpenOptions{Formats: formats, Tree: tr,
			Opts: map[string]string{"properties": f.word("carbon-properties")}})
		if err != nil {
			return err
		}
		if p == storePath {
			p = ""
		}
		paths[i] = place + p
	}
	return nil
}

// word is what was given with a flag for a reading option.
func (f *sourceFlags) word(flag string) string {
	for _, w := range f.words {
		if w.flag == flag {
			return w.given
		}
	}
	return ""
}

// allLimits are what a file may ask for at most.
func (f *sourceFlags) allLimits() (l format.Limits, err error) {
	l = f.limits
	switch {
	case l.Fields < 0:
		return l, wrongUse("--max-fields is a number of fields")
	case l.Depth < 0:
		return l, wrongUse("--max-depth is a number of lists and structs in each other")
	}
	if f.maxPage != "" {
		if l.Page, err = parseSize("--max-page", f.maxPage); err != nil {
			return l, err
		}
	}
	if f.maxMeta != "" {
		if l.Metadata, err = parseSize("--max-metadata", f.maxMeta); err != nil {
			return l, err
		}
	}
	switch {
	case f.memory != "":
		l.Opening, err = parseSize("--memory", f.memory)
	case f.own != nil && f.changed("memory"):
		l.Opening, err = parseSize("--memory", f.own.String())
	}
	return l, err
}

// known refuses the flag if the format of a source has no such option. What cannot be told now is told when it
// is opened.
func (w *wordFlag) known(ctx context.Context, a *app, paths []string, o stoa.OpenOptions) error {
	for _, p := range paths {
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: withoutTable(p)}, o)
		if err != nil || hasKey(f, w.key) {
			continue
		}
		var others []string
		for i := range a.formats {
			if hasKey(&a.formats[i], w.key) {
				others = append(others, a.formats[i].Name)
			}
		}
		e := &useError{fmt.Sprintf("--%s means nothing to %s, which is read as %s", w.flag, p, f.Name),
			"no format has that option"}
		if len(others) > 0 {
			e.hint = "it is for " + strings.Join(others, ", ")
		}
		return e
	}
	return nil
}

func hasKey(f *format.Format, key string) bool {
	return slices.ContainsFunc(f.ReadKeys, func(k format.OptionKey) bool { return k.Name == key })
}

// open opens all paths as one table.
func (f *sourceFlags) open(ctx context.Context, a *app, paths []string) (*stoa.Table, error) {
	o, err := f.options(ctx, a, paths)
	if err != nil {
		return nil, err
	}
	return a.openAll(ctx, paths, o)
}

// openError is why a source could not be opened.
type openError struct{ error }

func (e *openError) Unwrap() error { return e.error }

func (a *app) openAll(ctx context.Context, paths []string, o stoa.OpenOptions) (*stoa.Table, error) {
	a.reads(paths...)
	a.reads(a.namedBy(o.Opts)...)
	t, err := stoa.OpenAll(ctx, paths, o)
	if err != nil {
		return nil, &openError{err}
	}
	for _, s := range t.Sources() {
		a.detail("%s: %s", s.Name, s.Format)
	}
	return t, nil
}

// namedBy are the files and directories that reading options name.
func (a *app) namedBy(opts map[string]string) (paths []string) {
	for _, f := range a.formats {
		for _, k := range f.ReadKeys {
			if v := opts[k.Name]; v != "" && (strings.Contains(k.Values, "FILE") || strings.Contains(k.Values, "DIR")) {
				paths = append(paths, strings.Split(v, ",")...)
			}
		}
	}
	return paths
}

// each opens every path on its own and shows it to do. A path that cannot be opened does not keep the others from
// being shown, if there are others.
func (f *sourceFlags) each(ctx context.Context, a *app, cmd *cobra.Command, paths []string,
	do func(path string, t *stoa.Table) error) error {
	o, err := f.options(ctx, a, paths)
	if err != nil {
		return err
	}
	return a.eachPath(ctx, cmd, paths, func(path string) error {
		t, err := a.openAll(ctx, []string{path}, o)
		if err != nil {
			return err
		}
		defer t.Close()
		return do(path, t)
	})
}

// eachPath goes on after an error when there are several paths. The worst of the errors decides the status.
func (a *app) eachPath(ctx context.Context, cmd *cobra.Command, paths []string, do func(path string) error) error {
	a.reads(paths...)
	var worst error
	for _, p := range paths {
		err := do(p)
		if err == nil {
			continue
		}
		if len(paths) == 1 || errors.Is(err, errEnough) || ctx.Err() != nil {
			return err
		}
		a.tell(cmd, err)
		switch st := status(err); {
		case st == statusDamage:
			worst = errDamage
		case worst == nil:
			worst = errFailed
		}
	}
	return worst
}

// keyValues reads KEY=VALUE arguments.
func keyValues(flag string, args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, s := range args {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, wrongUse("%s %s: write it as KEY=VALUE", flag, s)
		}
		m[k] = v
	}
	return m, nil
}

// size is how many bytes a source has: a file's, or those of all files in a directory. -1 if that is not known.
func (a *app) size(ctx context.Context, name string) int64 {
	tr := tree{a: a}
	name = withoutTable(name)
	info, err := tr.Stat(ctx, name)
	if err != nil {
		return -1
	}
	if !info.Dir {
		return info.Size
	}
	var sum int64
	err = filepath.WalkDir(filepath.FromSlash(name), func(_ string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || ctx.Err() != nil {
			return errors.Join(err, ctx.Err())
		}
		st, err := d.Info()
		if err == nil {
			sum += st.Size()
		}
		return err
	})
	if err != nil {
		return -1
	}
	return sum
}

// withoutTable is the place of PATH#TABLE.
func withoutTable(name string) string {
	if _, err := os.Lstat(name); err == nil {
		return name
	}
	if i := strings.LastIndexByte(name, '#'); i >= 0 {
		return name[:i]
	}
	return name
}
