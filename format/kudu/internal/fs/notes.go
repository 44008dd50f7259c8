package fs

import (
	"stoa/fault"
	"stoa/format/kudu/internal/codes"
	"stoa/region"
)

// keep adds a finding unless it already exists, because superblocks may be read again. Metadata holds no rows, so
// damage to it loses none.
func (f *FS) keep(x region.Finding) {
	if x.Code == "kudu.instance.damaged" || x.Code == "kudu.cmeta.damaged" {
		x.Lost = 0
	}
	if f.reported[x] {
		return
	}
	if f.reported == nil {
		f.reported = map[region.Finding]bool{}
	}
	f.reported[x] = true
	f.Findings = append(f.Findings, x)
}

// Note adds a finding; part is the tablet, container or data directory, if any.
func (f *FS) Note(code string, at fault.Span, part, message string) {
	f.keep(codes.Codes.Finding(code, at, part, message))
}

// fault adds an error as a finding.
func (f *FS) fault(code string, err error, part string) { f.keep(codes.Finding(code, err, part)) }

// odd notes a directory of blocks or of a log in which there are other directories.
func (f *FS) odd(dir string) {
	if f.Strange != nil {
		f.Strange.Store(dir, true)
	}
}

// Noted reports whether f has a finding.
func (f *FS) Noted(x region.Finding) bool { return f.reported[x] }
