package lake

import (
	"encoding/hex"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow-go/v18/arrow"

	"stoa/internal/coerce"
	"stoa/internal/hive"
)

// Null is the name of the partition for null.
const Null = "__HIVE_DEFAULT_PARTITION__"

// Text returns a partition value as text, as used in names of directories; ok is false for null.
func (t *Term) Text(v any) (s string, ok bool) {
	if v == nil {
		return "", false
	}
	switch t.Transform {
	case "year":
		return strconv.Itoa(1970 + int(v.(int32))), true
	case "month":
		m := int64(v.(int32))
		return fmt.Sprintf("%04d-%02d", 1970+floor(m, 12), m-12*floor(m, 12)+1), true
	case "day":
		return dayText(v.(int32)), true
	case "hour":
		return time.Unix(int64(v.(int32))*3600, 0).UTC().Format("2006-01-02-15"), true
	}
	if t.Transform != "bucket" {
		switch x := t.Type.(type) {
		case *arrow.Date32Type:
			return dayText(v.(int32)), true
		case *arrow.TimestampType:
			return StampText(v.(int64), x), true
		case *arrow.Decimal128Type:
			d, _ := coerce.OfBigEndian(v.([]byte))
			return d.ToString(x.Scale), true
		}
	}
	switch x := v.(type) {
	case []byte:
		if utf8.Valid(x) {
			return string(x), true
		}
		return hex.EncodeToString(x), true
	default:
		return fmt.Sprint(x), true
	}
}

func dayText(days int32) string { return time.Unix(int64(days)*86400, 0).UTC().Format("2006-01-02") }

// StampText formats a timestamp as Delta does: in UTC, without trailing zeros of the fraction.
func StampText(v int64, t *arrow.TimestampType) string {
	return arrow.Timestamp(v).ToTime(t.Unit).UTC().Format("2006-01-02 15:04:05.999999999")
}

// PathOf returns the directories of a partition below that of the data.
func PathOf(terms []Term, values []any) string {
	var out []string
	for i := range terms {
		s, ok := terms[i].Text(values[i])
		if s = hive.Escape(s); !ok {
			s = Null
		}
		out = append(out, hive.Escape(terms[i].Name)+"="+s)
	}
	return strings.Join(out, "/")
}
