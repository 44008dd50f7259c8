// Package s3 has versitygw, an S3 server that is not ours, judge what stoa writes to S3.
package s3
