package meta

import (
	"encoding/json"
	"slices"
)

// LogicalKey is the metadata key of a field whose logical type does not exist in Arrow; its value is that type as JSON.
// The field's values are read as they are stored; a writer restores the logical type from the key.
const LogicalKey = "PARQUET:logical_type"

// Annotation is a logical type that does not exist in Arrow.
type Annotation struct {
	Type      string `json:"type"`
	Version   int8   `json:"specification_version,omitempty"` // of VARIANT
	CRS       string `json:"crs,omitempty"`                   // of GEOMETRY and GEOGRAPHY
	Algorithm string `json:"algorithm,omitempty"`             // of GEOGRAPHY
	UTC       bool   `json:"is_adjusted_to_utc,omitempty"`    // of TIME, which is annotated only if this is true
}

// algorithms between points: parquet.thrift, EdgeInterpolationAlgorithm.
var algorithms = []string{"SPHERICAL", "VINCENTY", "THOMAS", "ANDOYER", "KARNEY"}

// annotated are the logical types that do not exist in Arrow.
var annotated = map[int]string{LogicalTime: "TIME", logicalEnum: "ENUM", LogicalJSON: "JSON", logicalBSON: "BSON",
	logicalVariant: "VARIANT", logicalGeometry: "GEOMETRY", logicalGeography: "GEOGRAPHY"}

// Annotation returns the text for the field's metadata; "" if the Arrow type already expresses everything.
func (e *SchemaElem) Annotation() string {
	l := e.LogicalType()
	a := Annotation{Type: annotated[l.Kind], Version: l.version, CRS: l.crs}
	switch {
	case l.Kind == 0 && e.converted == convertedInterval:
		a.Type = "INTERVAL"
	case a.Type == "" || l.Kind == LogicalTime && !l.UTC:
		return ""
	case l.Kind == LogicalTime:
		a.UTC = true
	case l.Kind == logicalGeography && l.algorithm >= 0 && int(l.algorithm) < len(algorithms):
		a.Algorithm = algorithms[l.algorithm]
	}
	b, err := json.Marshal(a)
	if err != nil {
		return ""
	}
	return string(b)
}

// AnnotationCodes are the numbers that represent an annotation in a file.
type AnnotationCodes struct {
	Logical   int16 // 0: none
	Converted int32 // -1: none
	Version   int8
	CRS       string
	Algorithm int32 // -1: none
	UTC       bool
}

// ParseAnnotation parses the text of a field's metadata; ok is false if it does not describe a type that can be
// written.
func ParseAnnotation(text string) (m AnnotationCodes, ok bool) {
	var a Annotation
	if json.Unmarshal([]byte(text), &a) != nil {
		return m, false
	}
	m = AnnotationCodes{Converted: int32(slices.Index(convertedTypes, a.Type)), Version: a.Version, CRS: a.CRS,
		UTC: a.UTC, Algorithm: int32(slices.Index(algorithms, a.Algorithm))}
	for kind, name := range annotated {
		if name == a.Type {
			m.Logical = int16(kind)
		}
	}
	return m, m.Logical > 0 || a.Type == "INTERVAL"
}
