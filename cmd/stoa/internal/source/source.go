package source

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"stoa"
	"stoa/cmd/stoa/internal/cli"
	"stoa/format"
	"stoa/store"
	"stoa/store/remote"
)

// SourceFlags say how sources are opened.
type SourceFlags struct {
	From     string
	Opts     []string
	NoVerify bool
	Mmap     bool
	MaxPage  string // --max-page
	MaxMeta  string // --max-metadata
	// --max-requests
	MaxRequests int64
	Cache       string // --cache
	CacheSize   string // --cache-size
	Memory      string // --memory, if the verb has no such flag of its own
	Limits      format.Limits
	Share       stoa.Share // of what is planned
	Planned     bool       // nothing is read: stoa.OpenOptions.Planned

	OptionFlags []*cli.OptionFlag
	Changed     func(flag string) bool
	Own         pflag.Value // of the verb's own --memory for rows; nil: it has none

	Verifies bool // verifying checksums is the purpose of the verb

	// Shared are the OptionFlags that also apply to something besides the sources: they are ignored for a source whose
	// format has no such option.
	Shared []string
}

func (f *SourceFlags) Register(a *cli.App, cmd *cobra.Command) {
	fl := cmd.Flags()
	fl.StringVar(&f.From, "from", "", "read the source as `FORMAT` instead of detecting it (stoa formats lists them)")
	fl.StringArrayVar(&f.Opts, "source-opt", nil,
		"set a reading option of the source's format, `KEY=VALUE` (stoa formats NAME lists them); repeatable")
	if !f.Verifies {
		fl.BoolVar(&f.NoVerify, "no-verify", false, "do not compare checksums")
	}
	fl.BoolVar(&f.Mmap, "mmap", false, "map local files into memory instead of reading them; they must not change")
	fl.StringVar(&f.MaxPage, "max-page", "", "refuse a page of more than `SIZE`, decoded (default 1GiB)")
	fl.StringVar(&f.MaxMeta, "max-metadata", "", "refuse metadata of more than `SIZE` (default 256MiB)")
	fl.Int64Var(&f.MaxRequests, "max-requests", 0, "send at most `N` requests to stores at addresses")
	fl.StringVar(&f.Cache, "cache", "", "keep what is read of addresses in the directory `DIR`, and read it from there")
	fl.StringVar(&f.CacheSize, "cache-size", "10GiB", "keep at most `SIZE` in --cache")
	fl.Lookup("cache").Hidden, fl.Lookup("cache-size").Hidden = true, true // pages are full: docs/remote.md
	fl.Int64Var(&f.Limits.Fields, "max-fields", 0,
		"refuse a source with more than `N` columns, including nested fields (default 65536)")
	fl.Int64Var(&f.Limits.Depth, "max-depth", 0,
		"refuse a source with types or values nested more than `N` deep (default 64)")
	if own := fl.Lookup("memory"); own != nil {
		own.Usage += "; opening a source may use as much, too (default 1GiB), and the process about twice as much, " +
			"or what a scan needs"
		f.Own = own.Value
	} else {
		fl.StringVar(&f.Memory, "memory", "",
			"refuse a source that needs more than `SIZE` of memory to open or recover (default 1GiB)")
	}
	f.Changed = fl.Changed
	for _, w := range cli.NewOptionFlags() {
		if fl.Lookup(w.Flag) != nil { // the verb uses the name for something else
			continue
		}
		f.OptionFlags = append(f.OptionFlags, w)
		if w.Value != "" {
			fl.Bool(w.Flag, false, w.Usage)
		} else {
			fl.StringVar(&w.Given, w.Flag, "", w.Usage)
		}
	}
	cli.Complete(cmd, "from", a.FormatNames)
}

// Options converts the flags to options of the library, for sources at paths. Paths that begin with # are completed in
// place: they are tables of the CarbonData store that --carbon-properties names.
func (f *SourceFlags) Options(ctx context.Context, a *cli.App, paths []string) (stoa.OpenOptions, error) {
	opts, err := KeyValues("--source-opt", f.Opts)
	if err == nil {
		err = f.checkPlain(a)
	}
	if err != nil {
		return stoa.OpenOptions{}, err
	}
	o := stoa.OpenOptions{Formats: a.Formats, From: f.From, NoVerify: f.NoVerify, Mmap: f.Mmap, Share: f.Share,
		Planned: f.Planned, Tree: store.Roots(cli.Tree{A: a})}
	if o.Limits, err = f.AllLimits(); err != nil {
		return o, err
	}
	if o.Limits.Opening == 0 {
		o.Limits.Opening = a.Opening
	}
	a.Remote().Limit(f.MaxRequests)
	a.Remote().Budget(o.Limits.Opening)
	if err = f.openCache(a); err == nil {
		err = a.Enter(ctx, paths)
	}
	if resolveDotDots(paths); err == nil {
		err = f.inStore(ctx, a.Formats, paths, o.Tree)
	}
	if err != nil {
		return o, err
	}
	a.Reads(paths...)
	for _, w := range f.OptionFlags {
		if !f.Changed(w.Flag) {
			continue
		}
		if cmp.Or(w.Value, w.Given) == "" {
			return o, cli.WrongUse("--%s is empty: leave it out, or give a value", w.Flag)
		}
		if opts == nil {
			opts = map[string]string{}
		}
		if _, ok := opts[w.Key]; ok {
			return o, cli.WrongUse("--%s and --source-opt %s=… say the same thing", w.Flag, w.Key)
		}
		if err := checkKnown(w, ctx, a, paths, o); err != nil && slices.Contains(f.Shared, w.Flag) {
			continue
		} else if err != nil {
			return o, err
		}
		opts[w.Key] = cmp.Or(w.Value, w.Given)
		if err := placed(w, ctx, a, paths, o, opts); err != nil {
			return o, err
		}
	}
	o.Opts = opts
	return o, nil
}

// placed enters the places that an option names, and replaces a schema in a file by its content if the format wants
// that.
func placed(w *cli.OptionFlag, ctx context.Context, a *cli.App, paths []string, o stoa.OpenOptions,
	opts map[string]string) (err error) {
	switch w.Key {
	case "wal-dir", "meta-dir", "data-dirs":
		places := strings.Split(w.Given, ",")
		if err := a.Enter(ctx, places); err != nil {
			return err
		}
		opts[w.Key] = strings.Join(places, ",")
		a.Reads(places...)
	case "encryption-key":
		if w.Given != "default" {
			a.Reads(w.Given)
		}
	case "schema":
		a.Reads(w.Given) // for text formats the option becomes the content of this file
		opts[w.Key], err = schemaOf(ctx, a, w.Given, paths, o)
	}
	return err
}

// checkPlain returns wrong use if --from names no format, or the number of requests is negative.
func (f *SourceFlags) checkPlain(a *cli.App) error {
	if f.MaxRequests < 0 {
		return cli.WrongUse("--max-requests %d: a number of requests is not negative", f.MaxRequests)
	}
	if f.From == "" || a.Format(f.From) != nil {
		return nil
	}
	return &cli.UseError{Message: "--from: there is no format \"" + f.From + "\"",
		Hint: "the formats are " + strings.Join(a.FormatNames(), ", ")}
}

// Line returns the flags as they were given, for another command line about the same sources.
func (f *SourceFlags) Line() (args []string) {
	if f.From != "" {
		args = append(args, "--from", f.From)
	}
	for _, o := range f.Opts {
		args = append(args, "--source-opt", o)
	}
	for _, w := range f.OptionFlags {
		switch {
		case !f.Changed(w.Flag):
		case w.Value != "":
			args = append(args, "--"+w.Flag)
		default:
			args = append(args, "--"+w.Flag, w.Given)
		}
	}
	for _, x := range [][2]string{{"--max-page", f.MaxPage}, {"--max-metadata", f.MaxMeta}} {
		if x[1] != "" {
			args = append(args, x[0], x[1])
		}
	}
	if f.NoVerify {
		args = append(args, "--no-verify")
	}
	if f.Mmap {
		args = append(args, "--mmap")
	}
	return args
}

// resolveDotDots replaces, in place, paths with .. after a symbolic link.
func resolveDotDots(paths []string) {
	for i, p := range paths {
		name := cli.WithoutTable(p)
		paths[i] = store.Local{}.ResolveDotDot(name) + p[len(name):]
	}
}

// MaxSchema is the maximum size in bytes of a schema in a file.
const MaxSchema = 16 << 20

// schemaOf returns the value of --schema for the format of the sources. Text formats have the schema itself as an
// option's value: the content of the file, or the given value if there is no such file. For other formats it is the
// file's name.
func schemaOf(ctx context.Context, a *cli.App, given string, paths []string, o stoa.OpenOptions) (string, error) {
	if names := []string{given}; remote.Is(given) {
		if err := a.Enter(ctx, names); err != nil {
			return "", err
		}
		given = names[0]
	}
	for _, p := range paths {
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: cli.WithoutTable(p)}, o)
		if err != nil || f.Name != "jsonl" && f.Name != "csv" && f.Name != "tsv" {
			continue
		}
		size, err := sizeOf(ctx, a, given)
		switch {
		case errors.Is(err, fs.ErrNotExist) && strings.Contains(given, ":") && !remote.Is(given): // name: type
			return given, nil
		case err != nil:
			return "", fmt.Errorf("--schema: %w", err)
		case size > MaxSchema:
			return "", cli.WrongUse("--schema %s: %d bytes are too many for a schema", given, size)
		}
		b, err := a.ReadFile(ctx, given)
		text := strings.TrimSpace(string(b))
		if err == nil && text == "" { // an option without a value would mean that none was given
			err = cli.WrongUse("--schema %s: there is no schema in the file", given)
		}
		return text, err
	}
	return given, nil
}

// sizeOf returns the size of a file, which may be an object at an address.
func sizeOf(ctx context.Context, a *cli.App, name string) (int64, error) {
	if remote.Is(name) {
		at, err := a.Stat(ctx, name)
		return at.Size, err
	}
	st, err := os.Stat(name)
	if err != nil {
		return 0, err
	}
	return st.Size(), nil
}

// StorePath stands for the CarbonData store that the settings name; #TABLE is a table in it.
const StorePath = "#"

// inStore prepends the store's place to paths that begin with #, unless files of that name exist.
func (f *SourceFlags) inStore(ctx context.Context, formats []format.Format, paths []string, tr store.Tree) error {
	for i, p := range paths {
		if !strings.HasPrefix(p, StorePath) {
			continue
		}
		if _, err := os.Lstat(p); err == nil {
			continue
		}
		place, err := stoa.Home(ctx, stoa.OpenOptions{Formats: formats, Tree: tr,
			Opts: map[string]string{"properties": f.OptionValue("carbon-properties")}})
		if err != nil {
			return err
		}
		if p == StorePath {
			p = ""
		}
		paths[i] = place + p
	}
	return nil
}

// OptionValue returns the value that was given with a flag for a reading option.
func (f *SourceFlags) OptionValue(flag string) string {
	for _, w := range f.OptionFlags {
		if w.Flag == flag {
			return w.Given
		}
	}
	return ""
}

// AllLimits returns the limits for opening files.
func (f *SourceFlags) AllLimits() (l format.Limits, err error) {
	l = f.Limits
	switch {
	case l.Fields < 0:
		return l, cli.WrongUse("--max-fields is a number of fields")
	case l.Depth < 0:
		return l, cli.WrongUse("--max-depth is a number of levels of nesting")
	}
	if f.MaxPage != "" {
		if l.Page, err = cli.ParseSize("--max-page", f.MaxPage); err != nil {
			return l, err
		}
	}
	if f.MaxMeta != "" {
		if l.Metadata, err = cli.ParseSize("--max-metadata", f.MaxMeta); err != nil {
			return l, err
		}
	}
	size := f.Memory
	if f.Own != nil && f.Changed("memory") {
		size = f.Own.String()
	}
	if size == "" {
		return l, nil
	}
	if l.Opening, err = cli.ParseSize("--memory", size); err == nil {
		cli.Budget(l.Opening)
	}
	return l, err
}

// checkKnown returns an error if the format of a source has no such option. A source whose format cannot be detected is
// reported when it is opened.
func checkKnown(w *cli.OptionFlag, ctx context.Context, a *cli.App, paths []string, o stoa.OpenOptions) error {
	for _, p := range paths {
		f, err := stoa.Probe(ctx, format.Target{Tree: o.Tree, Name: cli.WithoutTable(p)}, o)
		if err != nil || HasKey(f, w.Key) {
			continue
		}
		var others []string
		for i := range a.Formats {
			if HasKey(&a.Formats[i], w.Key) {
				others = append(others, a.Formats[i].Name)
			}
		}
		e := &cli.UseError{Message: fmt.Sprintf("--%s means nothing to %s, which is read as %s", w.Flag, p, f.Name),
			Hint: "no format has that option"}
		if len(others) > 0 {
			e.Hint = "it is for " + strings.Join(others, ", ")
		}
		return e
	}
	return nil
}

func HasKey(f *format.Format, key string) bool {
	return slices.ContainsFunc(f.ReadKeys, func(k format.OptionKey) bool { return k.Name == key })
}

// Open opens all paths as one table.
func (f *SourceFlags) Open(ctx context.Context, a *cli.App, paths []string) (*stoa.Table, error) {
	o, err := f.Options(ctx, a, paths)
	if err != nil {
		return nil, err
	}
	return OpenAll(a, ctx, paths, o)
}

func OpenAll(a *cli.App, ctx context.Context, paths []string, o stoa.OpenOptions) (*stoa.Table, error) {
	a.Reads(paths...)
	a.Reads(NamedBy(a, o.Opts)...)
	t, err := stoa.OpenAll(ctx, paths, o)
	if err != nil {
		return nil, &cli.OpenError{Err: err}
	}
	for _, s := range t.Sources() {
		a.Detail("%s: %s", s.Name, s.Format)
	}
	return t, nil
}

// NamedBy returns the files and directories that reading options name.
func NamedBy(a *cli.App, opts map[string]string) (paths []string) {
	for _, f := range a.Formats {
		for _, k := range f.ReadKeys {
			if v := opts[k.Name]; v != "" && (strings.Contains(k.Values, "FILE") || strings.Contains(k.Values, "DIR")) {
				paths = append(paths, strings.Split(v, ",")...)
			}
		}
	}
	return paths
}

// Each opens every path on its own and calls do with it. A path that cannot be opened does not prevent the others from
// being processed.
func (f *SourceFlags) Each(ctx context.Context, a *cli.App, cmd *cobra.Command, paths []string,
	do func(path string, t *stoa.Table) error) error {
	o, err := f.Options(ctx, a, paths)
	if err != nil {
		return err
	}
	return EachPath(a, ctx, cmd, paths, func(path string) error {
		t, err := OpenAll(a, ctx, []string{path}, o)
		if err != nil {
			return err
		}
		defer t.Close()
		return do(path, t)
	})
}

// EachPath calls do for each path, and continues after an error if there are several. The worst error determines the
// status.
func EachPath(a *cli.App, ctx context.Context, cmd *cobra.Command, paths []string, do func(path string) error) error {
	a.Reads(paths...)
	var worst error
	for _, p := range paths {
		err := do(p)
		if err == nil {
			continue
		}
		if len(paths) == 1 || errors.Is(err, cli.ErrEnough) || ctx.Err() != nil {
			return err
		}
		a.ReportError(cmd, err)
		worst = cli.Worse(worst, err)
	}
	return worst
}

// KeyValues parses KEY=VALUE arguments.
func KeyValues(flag string, args []string) (map[string]string, error) {
	if len(args) == 0 {
		return nil, nil
	}
	m := map[string]string{}
	for _, s := range args {
		k, v, ok := strings.Cut(s, "=")
		if !ok || k == "" {
			return nil, cli.WrongUse("%s %s: write it as KEY=VALUE", flag, s)
		}
		if was, ok := m[k]; ok && was != v {
			return nil, cli.WrongUse("%s %s is given twice, %q and %q: one of them would be lost", flag, k, was, v)
		}
		m[k] = v
	}
	return m, nil
}

// openCache sets up the cache for data read from addresses, if --cache is given.
func (f *SourceFlags) openCache(a *cli.App) error {
	if f.Cache == "" {
		return nil
	}
	size, err := cli.ParseSize("--cache-size", f.CacheSize)
	if err != nil {
		return err
	}
	c, err := remote.OpenCache(f.Cache, size)
	if err == nil {
		a.Remote().Keep(c)
	}
	return err
}
