// Package reading has what all verbs that read rows share: the damage policy, the manifest of losses, findings in
// words.
package reading
