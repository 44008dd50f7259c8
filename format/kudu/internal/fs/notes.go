package fs

import (
	"stoa/fault"
	"stoa/format/kudu/internal/codes"
	"stoa/region"
)

// keep keeps a finding, once: superblocks may be read again.
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

// Note keeps a finding.
func (f *FS) Note(code string, at fault.Span, part, message string) {
	f.keep(codes.Codes.Finding(code, at, part, message))
}

// fault keeps an error as a finding.
func (f *FS) fault(code string, err error, part string) { f.keep(codes.Finding(code, err, part)) }
