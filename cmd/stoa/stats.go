package main

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/spf13/cobra"

	"stoa"
)

// statsDoc is what -f json has for each column; null is not known.
type statsDoc struct {
	Column     string   `json:"column"`
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
}

func (a *app) statsCmd() *cobra.Command {
	var src sourceFlags
	var out outputFlags
	var dmg damageFlags
	cmd := &cobra.Command{
		Use:   "stats PATH...",
		Short: "Show what each column is made of",
		Long: `Read every page and show, for each column: encoding, codec, blocks, values, nulls, bytes after decompression and as
stored, the share of the file, the size of the dictionary, the least and the greatest value. What a format or its
library does not tell stays empty. With --damaged skip-rows or null-cells the sums are of what can be read. -f json is an array with an object a column.`,
		Example: "  stoa stats block.cfile\n  stoa stats sales.parquet -f csv",
		Args:    a.paths,
		RunE: func(cmd *cobra.Command, args []string) error {
			ctx := cmd.Context()
			if err := out.check(reportForms); err != nil {
				return err
			}
			var spec stoa.ScanSpec
			if err := dmg.apply(&spec); err != nil {
				return err
			}
			t, err := src.open(ctx, a, args)
			if err != nil {
				return err
			}
			defer t.Close()
			if err := a.spareAll(t.Sources(), out.file, dmg.manifest); err != nil {
				return err
			}
			r, err := a.statsOf(ctx, t, spec)
			if err == nil {
				err = r.write(ctx, a, &out)
			}
			return dmg.report(ctx, a, args, t.Findings(), err)
		},
	}
	dmg.register(cmd, "fail")
	out.register(cmd, reportForms, "default text")
	src.register(a, cmd)
	return cmd
}

func (a *app) statsOf(ctx context.Context, t *stoa.Table, spec stoa.ScanSpec) (*report, error) {
	stats, err := t.Stats(ctx, spec.Damaged, spec.Lost)
	if err != nil {
		return nil, err
	}
	var bytes int64
	for _, s := range t.Sources() {
		bytes += max(0, a.size(ctx, s.Name))
	}
	r := &report{cols: []reportColumn{{name: "column"}, {name: "type"}, {name: "encoding"}, {name: "codec"},
		{"blocks", true}, {"values", true}, {"nulls", true},
		{"raw", true}, {"stored", true}, {"share", true}, {"dictionary", true}, {name: "min"}, {name: "max"}}}
	for _, s := range stats {
		d := docOfStats(s, bytes)
		share := ""
		if d.Share != nil {
			share = fmt.Sprintf("%.1f%%", *d.Share*100)
		}
		r.add(d, d.Column, d.Type, d.Encoding, d.Codec, maybe(s.Blocks), maybe(s.Rows), maybe(s.Nulls),
			bytesText(s.Raw), bytesText(s.Stored), share,
			nonZero(s.Dict), brief(shownValue(s.Type, s.Min)), brief(shownValue(s.Type, s.Max)))
	}
	return r, nil
}

func docOfStats(s stoa.ColumnStats, bytes int64) statsDoc {
	d := statsDoc{Column: s.Name, Type: typeName(s.Type), Encoding: s.Encoding, Codec: s.Codec,
		Blocks: known(s.Blocks), Rows: known(s.Rows),
		Nulls: known(s.Nulls), Raw: known(s.Raw), Stored: known(s.Stored), Dictionary: known(s.Dict)}
	if s.Stored >= 0 && bytes > 0 {
		f := float64(s.Stored) / float64(bytes)
		d.Share = &f
	}
	if s.Min != "" || s.Max != "" {
		d.Min, d.Max = &s.Min, &s.Max
	}
	return d
}

func nonZero(n int64) string {
	if n <= 0 {
		return ""
	}
	return thousands(n)
}

// shownValue is a value as cat shows it: bytes in hex.
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

// brief cuts a value that is too long for a report.
func brief(s string) string {
	const most = 40
	r := []rune(oneLine(s))
	if len(r) <= most {
		return string(r)
	}
	return string(r[:most-1]) + "…"
}
