# Write the encrypted files of this folder, and the keys that open them, by pyarrow 26.0.1.    usage: make.py
# Row i of 120: a = i, null if i % 11 == 0; b = "x" and i % 7; l = [i, i + 1], [] if i % 3 == 0.
import base64
import pyarrow as pa, pyarrow.parquet as pq, pyarrow.parquet.encryption as pe

ROWS = 120
table = pa.table({
    "a": pa.array([None if i % 11 == 0 else i for i in range(ROWS)], pa.int64()),
    "b": pa.array([f"x{i % 7}" for i in range(ROWS)]),
    "l": pa.array([[i, i + 1] if i % 3 else [] for i in range(ROWS)], pa.list_(pa.int32())),
})
MASTER = {"foot": "0123456789012345", "mk": "1234567890123450"}


class Keys(pe.KmsClient):
    """A key management service in memory, which notes what it wrapped."""

    def __init__(self, wrapped):
        pe.KmsClient.__init__(self)
        self.wrapped = wrapped

    def wrap_key(self, key, name):
        self.wrapped.append((name, key))
        return base64.b64encode(MASTER[name].encode() + key)

    def unwrap_key(self, key, name):
        return base64.b64decode(key)[len(MASTER[name]):]


def columns(algorithm, plain):
    """Keys of their own for b and l; a has the footer's, or none where the footer is plain."""
    wrapped = []
    config = pe.EncryptionConfiguration(footer_key="foot", column_keys={"mk": ["b", "l.list.element"]}, double_wrapping=False,
                                        plaintext_footer=plain, encryption_algorithm=algorithm)
    p = pe.CryptoFactory(lambda _: Keys(wrapped)).file_encryption_properties(pe.KmsConnectionConfig(custom_kms_conf=MASTER), config)
    (_, foot), (_, b), (_, l) = wrapped
    return p, [f"key foot {foot.hex()}", f"column b base64:{base64.b64encode(b).decode()}", f"column l.list.element {l.hex()}"]


def uniform(algorithm, plain):
    """One key for all; the reader has to know the AAD prefix where the footer is encrypted."""
    key = b"0123456789abcdef" if plain else bytes(range(32))
    p = pe.create_encryption_properties(key, aad_prefix=b"tab", store_aad_prefix=plain, encryption_algorithm=algorithm, plaintext_footer=plain)
    return p, [f"footer text:{key.decode()}"] if plain else ["# 256 bits", f"footer {key.hex()}", "aad-prefix text:tab"]


for algorithm in "AES_GCM_V1", "AES_GCM_CTR_V1":
    for footer in "hidden", "plain":
        for version, keys in ("1.0", columns), ("2.0", columns), ("1.0", uniform), ("2.0", uniform):
            name = f"{'ctr' if 'CTR' in algorithm else 'gcm'}.{footer}.v{version[0]}.{keys.__name__}"
            p, lines = keys(algorithm, footer == "plain")
            with pq.ParquetWriter(name + ".parquet", table.schema, encryption_properties=p, data_page_version=version, write_page_index=True,
                                  write_page_checksum=True, data_page_size=100, write_batch_size=20, compression="zstd" if version == "2.0" else "snappy") as w:
                w.write_table(table, row_group_size=50)
            with open(name + ".keys", "w") as f:
                f.write("\n".join(lines) + "\n")
