package parquet

import (
	"slices"
	"strconv"
	"strings"

	"stoa/format"
	"stoa/format/option"
	"stoa/format/parquet/internal/write"
)

var _ format.Kept = (*reader)(nil)

// KeptBy returns the options that make a writer reproduce this file's Bloom filters, sorting columns and encryption. An
// empty value means that the file has the property but no option can reproduce it.
func (r *reader) KeptBy() map[string]string {
	opts := map[string]string{}
	names, err := write.Paths(r.Shown)
	if err != nil || len(names) != len(r.Leaves) {
		return opts
	}
	var filtered, plain []string
	for k, name := range names {
		quoted := option.Quote(name)
		for _, g := range r.Footer.RowGroups {
			if m := g.Columns[k].MetaData; m.BloomFilterOffset != nil && !slices.Contains(filtered, quoted) {
				filtered = append(filtered, quoted)
			}
			if c := g.Columns[k]; c.Crypto == nil && !slices.Contains(plain, quoted) {
				plain = append(plain, quoted)
			}
		}
	}
	if len(filtered) > 0 {
		opts["bloom"] = strings.Join(filtered, ",")
	}
	r.keptOrder(names, opts)
	r.keptEncryption(plain, opts)
	return opts
}

// keptOrder adds the sorting columns if all row groups agree on them. Rows are sorted within a row group, so it also
// adds the number of rows in a row group, if the writer can cut row groups at the same places.
func (r *reader) keptOrder(names []string, opts map[string]string) {
	groups := r.Footer.RowGroups
	if len(groups) == 0 || len(groups[0].SortingColumns) == 0 {
		return
	}
	for i, g := range groups {
		if i == 0 {
			opts["sorting-columns"] = ""
		}
		if !slices.Equal(g.SortingColumns, groups[0].SortingColumns) ||
			g.NumRows != groups[0].NumRows && (i+1 < len(groups) || g.NumRows > groups[0].NumRows) {
			return
		}
	}
	var keys []string
	for _, c := range groups[0].SortingColumns {
		if c.ColumnIdx < 0 || int(c.ColumnIdx) >= len(names) {
			return
		}
		key := option.Quote(names[c.ColumnIdx], ":")
		if c.Descending {
			key += ":desc"
		}
		if c.NullsFirst {
			key += ":nulls-first"
		}
		keys = append(keys, key)
	}
	if opts["sorting-columns"] = strings.Join(keys, ","); len(groups) > 1 {
		opts["row-group-rows"] = strconv.FormatInt(groups[0].NumRows, 10)
	}
}

// keptEncryption adds the encryption of the file; the keys are those with which it is read.
func (r *reader) keptEncryption(plain []string, opts map[string]string) {
	if r.Footer.Algorithm == nil && !r.EncryptedFooter || r.KeyFile == "" {
		return
	}
	opts["key-file"] = r.KeyFile
	if a := r.Algorithm(); a != nil {
		if a.CTR() {
			opts["encryption"] = "gcm-ctr"
		}
		if !a.Stored() {
			opts["store-aad-prefix"] = "false"
		}
	}
	if !r.EncryptedFooter {
		opts["plain-footer"] = "true"
	}
	if len(plain) > 0 {
		opts["plain-columns"] = strings.Join(plain, ",")
	}
}
