package stoa

import (
	"context"
	"slices"
	"strings"

	"stoa/fault"
	"stoa/format"
	"stoa/internal/address"
	"stoa/internal/share"
	"stoa/store"
)

func (o OpenOptions) formats() []format.Format {
	if o.Formats == nil {
		return Formats
	}
	return o.Formats
}

func (o OpenOptions) tree() store.Tree {
	if o.Tree == nil {
		return store.Roots(store.Local{})
	}
	return store.Roots(o.Tree)
}

func (o OpenOptions) opts() map[string]string { return format.MergeOptions(o.Opts, o.Typed) }

// checkOptionFormats returns an error if typed options belong to other formats.
func checkOptionFormats(typed format.Options, f *format.Format, place string) error {
	if typed == nil || slices.Contains(typed.Formats(), f.Name) {
		return nil
	}
	return fault.Invalidf("%s: %T are options of %s, and not of %s", place, typed, strings.Join(typed.Formats(), ", "),
		f.Name)
}

func (o OpenOptions) internal() format.OpenOptions {
	return format.OpenOptions{Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify, Depth: o.Depth,
		Opts: o.opts(), Mmap: o.Mmap}
}

// OpenOptions are the options of Open. The zero value probes the format and verifies checksums.
type OpenOptions struct {
	Formats []format.Format   // nil = Formats
	From    string            // format name; "" = probe
	Opts    map[string]string // the format's own options
	// Typed are options of the format as a struct of its package, such as cfile.ReadOptions; Opts take precedence. nil
	// means none.
	Typed    format.Options
	NoVerify bool         // do not verify checksums
	Depth    format.Depth // of Verify: all (Deep, the default), structure and checksums (Sums), structure (Quick)
	Recover  bool         // search for what a damaged footer or index no longer says; see Table.Findings
	Limits   format.Limits
	Tree     store.Tree // nil = the local file system
	// KeepPages is how many bytes of decoded pages an open table caches for look-ups: pages from which a scan wanted
	// only a few rows. 0 means 256 MiB, negative none.
	KeepPages int64
	// Mmap maps local files into memory instead of reading their pages, for files that nobody changes while the table
	// is open. Bytes that change in place while they are decoded are not defended against: they may give wrong values,
	// or end the program, so leave it off for files that others may write to. A file that is cut short is an error, as
	// always. Text and Arrow files are read. Without effect where the operating system maps no files.
	Mmap bool
	// SingleWriter: nobody else writes to the stores in which tables are changed, so stores without conditional writes
	// can be used.
	SingleWriter bool
	// Share is the part of the table that Plan divides: of several files, which alone are opened, or of the parts of a
	// single one. A table opened with it serves no other purpose.
	Share share.Share
	// Planned: the table is only planned. If it has thousands of files, each is closed as soon as its columns are
	// known, and opened once more by Plan.
	Planned bool
}

// placed converts addresses to names in a tree, which o is given if it has none: see address.Place.
func (o OpenOptions) placed(ctx context.Context, uris ...string) ([]string, OpenOptions, error) {
	names, tree, err := address.Place(ctx, o.Tree, uris)
	o.Tree = tree
	return names, o, err
}

// placedOne is placed for one name.
func (o OpenOptions) placedOne(ctx context.Context, uri string) (string, OpenOptions, error) {
	uris, o, err := o.placed(ctx, uri)
	return append(uris, "")[0], o, err
}
