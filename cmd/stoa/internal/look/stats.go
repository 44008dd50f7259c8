package look

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"

	"stoa/cmd/stoa/internal/cli"
	"stoa/cmd/stoa/internal/display"
	"stoa/cmd/stoa/internal/output"
	"stoa/cmd/stoa/internal/reading"
	"stoa/cmd/stoa/internal/schemafmt"
	"stoa/cmd/stoa/internal/source"
	"stoa/format"
	"stoa/region"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
)

// statsDoc is what -f json prints for each column; null means not known.
type statsDoc struct {
	Table      string   `json:"table,omitempty"` // with --each
	Column     string   `json:"column"`
	Sum        bool     `json:"sum,omitempty"` // of all columns: --sum
	Type       string   `json:"type"`
	Encoding   string   `json:"encoding,omitempty"`
	Codec      string   `json:"codec,omitempty"`
	Blocks     *int64   `json:"blocks"`
	Rows       *int64   `json:"rows"`
	Nulls      *int64   `json:"nulls"`
	Raw        *int64   `json:"raw_bytes"`
	Stored     *int64   `json:"stored_bytes"`
	Share      *float64 `json:"share"`
	Dictionary *int64   `json:"dictionary"`
	Min        *string  `json:"min"`
	Max        *string  `json:"max"`

	Encodings      []format.EncodedPages `json:"encodings,omitempty"` // blocks by encoding
	DictionaryData *int64                `json:"dictionary_bytes,omitempty"`
	Bloom          *int64                `json:"bloom_bytes,omitempty"`
}

const statsHelp = `Read every page and show for each column: encoding, codec, number of blocks, values and
nulls, bytes decompressed and as stored (in Parquet with page headers), its share of the file, entries of
the dictionary, bytes of Bloom filters, min and max. Several files, such as a glob, are one
table; with --each every table of every PATH is shown on its own, whatever its format and columns.

What a format does not have is empty. With --damaged skip-rows or null-cells, the figures are of what can
be read. -f json prints an array with an object per column. --sum adds a line with the sums of all columns
("sum": true).

If changes of a table are stored separately (in Kudu, and for deleted rows in CarbonData), values, nulls,
min and max are those of the table's rows, and blocks and bytes are those of the stored columns. If a
place has several tables, the share is of the bytes of the table's columns.

--rowsets shows the rowsets of a Kudu table, or of a whole server, instead: rows, live rows, bytes of
columns, keys (the Bloom filter and the key index) and deltas, what the deltas change, and from when on
snapshots are exact; then the bytes of each log, and the deleted blocks in each data directory. stoa ls
--blocks has the encoding, codec and size of each column of a rowset.`

func StatsCmd(a *cli.App) *cobra.Command {
	var src source.SourceFlags
	var out output.OutputFlags
	var dmg reading.DamageFlags
	var sum, sets, each bool
	cmd := &cobra.Command{
		Use:   "stats PATH...",
		Short: "Show the encoding, size, min and max of each column",
		Long:  statsHelp,
		Example: "  stoa stats block.cfile\n  stoa stats sales.parquet --sum\n  stoa stats sales.parquet -f csv\n" +
			"  stoa stats kudu#d_major --rowsets",
		Args: a.Paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.Check(output.ReportForms); err != nil {
				return err
			}
			if sets {
				return rowSets(a, ctx, args, &src, &out)
			}
			var spec stoa.ScanSpec
			if err := dmg.Apply(&spec); err != nil {
				return err
			}
			if each {
				return statsEach(a, cmd, args, &src, spec, &dmg, sum, &out)
			}
			t, err := src.Open(ctx, a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.CheckOutputs(t.Sources(), out.File, dmg.Manifest); err != nil {
				return err
			}
			stats, docs, err := statsOf(a, ctx, t, spec, sum)
			if err == nil {
				err = statsReport(stats, docs, &out).Write(ctx, a, &out)
			}
			return dmg.Report(ctx, a, args, t.Findings(), err)
		},
	}
	dmg.Register(cmd, "fail")
	cmd.Flags().BoolVar(&each, "each", false, eachUsage[:strings.Index(eachUsage, ", with")])
	cmd.Flags().BoolVar(&sum, "sum", false, "add a line with the sums of all columns")
	cmd.Flags().BoolVar(&sets, "rowsets", false, "show the sizes of the rowsets of Kudu tables instead")
	out.Register(cmd, output.ReportForms, "default text")
	out.RegisterRaw(cmd)
	src.Register(a, cmd)
	return cli.First(cmd, "format", "each", "rowsets")
}

// rowSets writes the sizes of the rowsets of the places, which together are one place.
func rowSets(a *cli.App, ctx context.Context, args []string, src *source.SourceFlags, out *output.OutputFlags) error {
	o, err := src.Options(ctx, a, args)
	if err != nil {
		return err
	}
	how, err := stoa.Listing("rowsets", o)
	if err != nil {
		return err
	}
	if err := a.CheckOutputs(nil, out.File); err != nil {
		return err
	}
	r := &output.Report{}
	for _, f := range how.Columns {
		r.Cols = append(r.Cols, output.ReportColumn{Name: f})
	}
	findings, err := listJoined(ctx, "rowsets", args, o, func(values []string) {
		doc := schemafmt.Pairs{}
		for i, name := range how.Columns {
			doc = append(doc, [2]string{name, values[i]})
		}
		r.Add(doc, values...)
	})
	if err != nil {
		return err
	}
	reading.ReportFindings(a, findings)
	if err = r.Write(ctx, a, out); err == nil && reading.Damaged(findings) {
		err = cli.ErrDamage
	}
	return err
}

// statsOf returns the figures of a table's columns, and with sum those of all of them.
func statsOf(a *cli.App, ctx context.Context, t *stoa.Table, spec stoa.ScanSpec, sum bool) ([]stoa.ColumnStats,
	[]statsDoc, error) {
	stats, err := t.Stats(ctx, spec.Damaged, spec.Lost)
	if err != nil {
		return nil, nil, err
	}
	var bytes int64
	for _, s := range t.Sources() {
		if cli.WithoutTable(s.Name) == s.Name {
			bytes += max(0, a.Size(ctx, s.Name))
			continue
		}
		for _, c := range stats {
			bytes += max(0, c.Stored)
		}
	}
	docs := make([]statsDoc, len(stats))
	for i, s := range stats {
		docs[i] = docOfStats(s, bytes)
		if a.Within != nil { // for a page: values may have megabytes each
			docs[i].Min, docs[i].Max = shortened(docs[i].Min), shortened(docs[i].Max)
		}
	}
	if sum && len(stats) > 0 {
		all := stoa.SumStats(stats)
		d := docOfStats(all, bytes)
		d.Sum = true
		stats, docs = append(stats, all), append(docs, d)
	}
	return stats, docs, nil
}

// maxBound is how many bytes of a min or max a page gets.
const maxBound = 300

// shortened returns at most the first maxBound bytes of a text, and a sign that there are more.
func shortened(text *string) *string {
	if text == nil || len(*text) <= maxBound {
		return text
	}
	short := strings.ToValidUTF8((*text)[:maxBound], "") + "…"
	return &short
}

// statsEach writes the figures of each table, and with sum those of all of them together.
func statsEach(a *cli.App, cmd *cobra.Command, args []string, src *source.SourceFlags, spec stoa.ScanSpec,
	dmg *reading.DamageFlags, sum bool, out *output.OutputFlags) error {
	ctx := cmd.Context()
	o, err := src.Options(ctx, a, args)
	if err == nil {
		err = a.CheckOutputs(nil, out.File, dmg.Manifest)
	}
	if err != nil {
		return err
	}
	var all, sums []stoa.ColumnStats
	var docs []statsDoc
	var findings []region.Finding
	err = eachTable(a, ctx, cmd, args, o, func(name string, t *stoa.Table) error {
		findings = append(findings, t.Findings()...)
		stats, of, err := statsOf(a, ctx, t, spec, sum)
		for i := range of {
			of[i].Table = name
			if of[i].Sum {
				sums = append(sums, stats[i])
			}
		}
		all, docs = append(all, stats...), append(docs, of...)
		return err
	})
	if len(sums) > 0 {
		total := stoa.SumStats(sums)
		d := docOfStats(total, 0)
		d.Table, d.Sum = "(sum)", true
		all, docs = append(all, total), append(docs, d)
	}
	if ctx.Err() == nil && len(docs) > 0 {
		r := statsReport(all, docs, out)
		r.Cols, r.Keys = slices.Insert(r.Cols, 0, output.ReportColumn{Name: "table"}), 2
		for i, d := range docs {
			r.Rows[i] = slices.Insert(r.Rows[i], 0, display.OneLine(d.Table))
		}
		err = errors.Join(err, r.Write(ctx, a, out))
	}
	return dmg.Report(ctx, a, args, findings, err)
}

func statsReport(stats []stoa.ColumnStats, docs []statsDoc, out *output.OutputFlags) *output.Report {
	bloom := slices.ContainsFunc(stats, func(s stoa.ColumnStats) bool { return s.Bloom > 0 })
	r := &output.Report{Cols: []output.ReportColumn{{Name: "column"}, {Name: "type"}, {Name: "encoding"},
		{Name: "codec"},
		{Name: "blocks", Right: true}, {Name: "values", Right: true}, {Name: "nulls", Right: true},
		{Name: "raw", Right: true}, {Name: "stored", Right: true}, {Name: "share", Right: true},
		{Name: "dictionary", Right: true}}}
	if bloom {
		r.Cols = append(r.Cols, output.ReportColumn{Name: "bloom", Right: true})
	}
	r.Cols = append(r.Cols, output.ReportColumn{Name: "min"}, output.ReportColumn{Name: "max"})
	for i, s := range stats {
		d := docs[i]
		share := ""
		if d.Share != nil {
			share = fmt.Sprintf("%.1f%%", *d.Share*100)
		}
		dict, bits := "", ""
		if s.Dict > 0 {
			dict = out.Number(s.Dict)
		}
		if s.Bloom > 0 {
			bits = out.Bytes(s.Bloom)
		}
		name := d.Column
		if d.Sum {
			name = "(sum)"
		}
		cells := []string{name, d.Type, encodingText(s), d.Codec, out.Number(s.Blocks), out.Number(s.Rows),
			out.Number(s.Nulls), out.Bytes(s.Raw), out.Bytes(s.Stored), share, dict}
		if bloom {
			cells = append(cells, bits)
		}
		low, high := shownValue(s.Type, s.Min), shownValue(s.Type, s.Max)
		if !out.Raw {
			low, high = shorten(low), shorten(high)
		}
		r.Add(d, append(cells, low, high)...)
	}
	return r
}

// encodingText names the encoding of a column's blocks; if there are several, each with its number of blocks.
func encodingText(s stoa.ColumnStats) string {
	if len(s.Encodings) < 2 {
		return s.Encoding
	}
	var all []string
	for _, e := range s.Encodings {
		all = append(all, fmt.Sprintf("%s %s", e.Encoding, display.Thousands(e.Pages)))
	}
	return strings.Join(all, ", ")
}

func docOfStats(s stoa.ColumnStats, bytes int64) statsDoc {
	d := statsDoc{Column: s.Name, Encodings: s.Encodings, Encoding: s.Encoding, Codec: s.Codec,
		Blocks: reading.Known(s.Blocks), Rows: reading.Known(s.Rows),
		Nulls: reading.Known(s.Nulls), Raw: reading.Known(s.Raw), Stored: reading.Known(s.Stored),
		Dictionary: reading.Known(s.Dict)}
	if s.Type != nil {
		d.Type = display.TypeName(s.Type)
	}
	if s.Dict > 0 {
		d.DictionaryData = reading.Known(s.DictSize)
	}
	if s.Bloom > 0 {
		d.Bloom = &s.Bloom
	}
	if s.Stored >= 0 && bytes > 0 {
		f := float64(s.Stored) / float64(bytes)
		d.Share = &f
	}
	if s.Min != "" || s.Max != "" {
		d.Min, d.Max = &s.Min, &s.Max
	}
	return d
}

// shownValue returns a value as cat shows it: bytes in hexadecimal.
func shownValue(t arrow.DataType, s string) string {
	if t == nil || !arrow.IsBinaryLike(t.ID()) || t.ID() == arrow.STRING || s == "" {
		return s
	}
	b, err := base64.StdEncoding.DecodeString(s)
	if err != nil {
		return s
	}
	return fmt.Sprintf("0x%x", b)
}

// shorten truncates a value that is too long for a report.
func shorten(s string) string {
	const maxLen = 40
	r := []rune(display.OneLine(s))
	if len(r) <= maxLen {
		return string(r)
	}
	return string(r[:maxLen-1]) + "…"
}
