// Package s3 has a server of S3 that is not ours, versitygw, judge what stoa writes to addresses.
package s3
