package file

import (
	"context"
	"hash/crc32"

	"stoa/fault"
	"stoa/format"
	"stoa/format/parquet/internal/meta"
)

// CheckCRC compares the checksum of a page with its bytes. The page is read into buf, which is reused from call to
// call.
func (r *File) CheckCRC(ctx context.Context, p meta.Page, path string, buf *[]byte) error {
	if p.Body.Len > r.Limits.Page {
		return fault.Limitf(p.Body, path, "%d bytes, the limit is %d", p.Body.Len, r.Limits.Page)
	}
	if int64(cap(*buf)) < p.Body.Len {
		*buf = make([]byte, p.Body.Len)
	}
	b := (*buf)[:p.Body.Len]
	if err := format.ReadFull(ctx, r.Src, p.Body, path, b); err != nil {
		return err
	}
	if got := crc32.ChecksumIEEE(b); got != p.CRC {
		return fault.Corruptf(p.Body, path+".crc", "expected %08x, computed %08x", p.CRC, got)
	}
	return nil
}
