package carbon

import (
	"github.com/apache/arrow-go/v18/arrow"

	"stoa/format"
	"stoa/format/carbon/internal/mixed"
	"stoa/format/carbon/internal/status"
	"stoa/format/carbon/internal/table"
	"stoa/format/parquet"
	"stoa/region"
)

// parquet verifies the files of a Parquet segment: each as a Parquet file of its own, and whether its rows fit the
// table. Missing files have already been reported.
func (v *verifier) parquet(t *table.Managed, l *status.Load) {
	if !l.Parquet() {
		return
	}
	files, _ := t.ForeignFiles(v.ctx, l)
	o := v.o
	o.Opts = mixed.AsSpark
	for _, f := range files {
		if v.Stopped() {
			return
		}
		damaged := false
		for x := range parquet.Format.Verify(v.ctx, format.Target{Tree: v.tree, Name: f.Name}, o) {
			damaged = damaged || x.Severity == region.Error
			v.Emit(x)
		}
		if damaged {
			continue
		}
		v.Part, v.Column = f.Name, ""
		var read func(arrow.RecordBatch) error // that a row can be read is all that is asked of it
		if v.o.Depth == format.Deep {
			read = func(arrow.RecordBatch) error { return nil }
		}
		if _, err := mixed.Check(v.ctx, t, f, o, read); err != nil {
			v.Blame("carbon.segment.foreign", err, -1, -1)
		}
	}
}
