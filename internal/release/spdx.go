package main

import (
	"crypto/sha256"
	"fmt"
	"strings"
	"time"
)

// The parts of SPDX 2.3 that the bill of materials uses.
type (
	spdxDoc struct {
		ID            string         `json:"SPDXID"`
		Version       string         `json:"spdxVersion"`
		License       string         `json:"dataLicense"`
		Name          string         `json:"name"`
		Namespace     string         `json:"documentNamespace"`
		Creation      spdxCreation   `json:"creationInfo"`
		Packages      []spdxPackage  `json:"packages"`
		Relationships []spdxRelation `json:"relationships"`
	}
	spdxCreation struct {
		Created  string   `json:"created"`
		Creators []string `json:"creators"`
	}
	spdxPackage struct {
		ID        string         `json:"SPDXID"`
		Name      string         `json:"name"`
		Version   string         `json:"versionInfo"`
		File      string         `json:"packageFileName,omitempty"`
		Location  string         `json:"downloadLocation"`
		Analyzed  bool           `json:"filesAnalyzed"`
		Concluded string         `json:"licenseConcluded"`
		Declared  string         `json:"licenseDeclared"`
		Copyright string         `json:"copyrightText"`
		Purpose   string         `json:"primaryPackagePurpose"`
		Checksums []spdxChecksum `json:"checksums,omitempty"`
		Refs      []spdxRef      `json:"externalRefs,omitempty"`
	}
	spdxChecksum struct {
		Algorithm string `json:"algorithm"`
		Value     string `json:"checksumValue"`
	}
	spdxRef struct {
		Category string `json:"referenceCategory"`
		Type     string `json:"referenceType"`
		Locator  string `json:"referenceLocator"`
	}
	spdxRelation struct {
		From string `json:"spdxElementId"`
		Kind string `json:"relationshipType"`
		To   string `json:"relatedSpdxElement"`
	}
)

const unstated = "NOASSERTION"

// spdx returns the bill of materials of a command in SPDX. It says of each module what the command says of itself: the
// name and the version. The licences are in NOTICE.
func (r *release) spdx(name string, b bom, sum [sha256.Size]byte) spdxDoc {
	d := spdxDoc{ID: "SPDXRef-DOCUMENT", Version: "SPDX-2.3", License: "CC0-1.0", Name: name,
		Namespace: fmt.Sprintf("https://spdx.org/spdxdocs/%s-%x", name, sum[:16]),
		Creation:  spdxCreation{r.when.Format(time.RFC3339), []string{"Tool: stoa-release"}}}
	const main = "SPDXRef-stoa"
	d.Packages = []spdxPackage{{ID: main, Name: "stoa", Version: r.version, File: name, Location: unstated,
		Concluded: unstated, Declared: "Apache-2.0", Copyright: unstated, Purpose: "APPLICATION",
		Checksums: []spdxChecksum{{"SHA256", fmt.Sprintf("%x", sum)}}}}
	d.Relationships = []spdxRelation{{d.ID, "DESCRIBES", main}}
	for i, c := range b.Components {
		p := spdxPackage{ID: fmt.Sprintf("SPDXRef-module-%d", i), Name: c.Name,
			Version: strings.TrimSpace(c.Version), Location: unstated, Concluded: unstated, Declared: unstated,
			Copyright: unstated, Purpose: "LIBRARY", Refs: []spdxRef{{"PACKAGE-MANAGER", "purl", c.PURL}}}
		d.Packages = append(d.Packages, p)
		d.Relationships = append(d.Relationships, spdxRelation{main, "DEPENDS_ON", p.ID})
	}
	return d
}
