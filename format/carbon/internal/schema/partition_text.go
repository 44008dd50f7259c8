package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"stoa/format/carbon/internal/layout"
)

// PartitionText returns the text of a value in the name of a partition's directory, not escaped: the one that Spark
// gives a partition that it makes, which is how Hive's metastore knows it. HiveNull stands for null, and for an empty
// text and a number that is not finite, which are read as null.
func PartitionText(c *layout.ColumnSchema, v Constant) string {
	switch {
	case v.Null:
		return HiveNull
	case c.Type == layout.TypeString || c.Type == layout.TypeVarchar:
		if v.S == "" {
			return HiveNull
		}
		return v.S
	case c.Type == layout.TypeBoolean:
		return strconv.FormatBool(v.I != 0)
	case c.Type == layout.TypeDate:
		return time.Unix(v.I*86400, 0).UTC().Format(time.DateOnly)
	case c.Type == layout.TypeTimestamp:
		return time.UnixMilli(v.I).UTC().Format("2006-01-02 15:04:05.999")
	case c.Type == layout.TypeFloat:
		return doubleText(float64(float32(v.F))) // with the digits of a double
	case c.Type == layout.TypeDouble:
		return doubleText(v.F)
	case c.Type == layout.TypeDecimal:
		return decimalText(v.D.BigInt().String(), c.Scale)
	}
	return strconv.FormatInt(v.I, 10)
}

// doubleText formats a number as Java's Double.toString, with the fewest digits that give it.
func doubleText(f float64) string {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return HiveNull
	}
	form := byte('f')
	if a := math.Abs(f); a != 0 && (a < 1e-3 || a >= 1e7) {
		form = 'e'
	}
	digits, exponent, _ := strings.Cut(strconv.FormatFloat(f, form, -1, 64), "e")
	if !strings.Contains(digits, ".") {
		digits += ".0"
	}
	if exponent == "" {
		return digits
	}
	e, _ := strconv.Atoi(exponent)
	return fmt.Sprintf("%sE%d", digits, e)
}

// decimalText formats a decimal, given by the digits of its unscaled value, as Java's BigDecimal.toString.
func decimalText(digits string, scale int32) string {
	sign := ""
	if digits[0] == '-' {
		sign, digits = "-", digits[1:]
	}
	n, s := len(digits), int(scale)
	if s == 0 {
		return sign + digits
	}
	if e := n - 1 - s; e < -6 { // small numbers, and zeros of a large scale
		if n > 1 {
			digits = digits[:1] + "." + digits[1:]
		}
		return fmt.Sprintf("%s%sE%d", sign, digits, e)
	}
	if n <= s {
		digits = strings.Repeat("0", s-n+1) + digits
		n = len(digits)
	}
	return sign + digits[:n-s] + "." + digits[n-s:]
}

// hiveSpecial are the characters that are escaped as %XX in the names of partition directories. Hive escapes "}", too,
// and Spark, which names the directories of CarbonData's partitions, does not (ExternalCatalogUtils.scala).
const hiveSpecial = "\"#%'*/:=?\\\x7f{[]^"

// Escape escapes a string for the name of a partition's directory; Unescape undoes it.
func Escape(s string) string {
	var b strings.Builder
	for i := range len(s) {
		if c := s[i]; c < 0x20 || strings.IndexByte(hiveSpecial, c) >= 0 {
			fmt.Fprintf(&b, "%%%02X", c)
		} else {
			b.WriteByte(c)
		}
	}
	return b.String()
}
