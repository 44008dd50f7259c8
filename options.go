package stoa

import (
	"stoa/format"
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
		return store.Local{}
	}
	return o.Tree
}

func (o OpenOptions) internal() format.OpenOptions {
	return format.OpenOptions{Limits: o.Limits.WithDefaults(), NoVerify: o.NoVerify, Depth: o.Depth, Opts: o.Opts}
}

// OpenOptions say how sources are opened. The zero value probes the format and verifies checksums.
type OpenOptions struct {
	Formats  []format.Format   // nil = Formats
	From     string            // format name; "" = probe
	Opts     map[string]string // the format's own options
	NoVerify bool              // do not compare checksums
	Depth    format.Depth      // of Verify: all (Deep, the default), structure and checksums (Sums), structure (Quick)
	Recover  bool              // find again what a damaged footer or index does not tell; see Table.Findings
	Limits   format.Limits
	Tree     store.Tree // nil = the local file system
	// KeepPages is how many bytes of decoded pages an open table keeps for look-ups: pages of which a scan
	// wanted only a few rows. 0 = 256 MiB, less than 0 = none.
	KeepPages int64
}
