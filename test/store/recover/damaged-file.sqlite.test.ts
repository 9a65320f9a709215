import { expect, test } from "bun:test"
import { mkdtempSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { DamagedFile } from "../../../src/store/recover/damaged-file"
import { leftover } from "../../harness/leftovers"

const PAGE_BYTES = 512

/** As SQLite writes a number of up to eight bytes (file format, section 1.6). */
function varint(value: number): number[] {
  const low = value % 128
  const higher = value < 128 ? [] : varint(Math.floor(value / 128)).map((byte) => byte | 128)
  return [...higher, low]
}

/** The bytes of a row in its own page; the rest is in overflow pages. */
const LOCAL_BYTES = 39
/** A promise of 545 GB, so that 39 bytes are local (file format, section 1.6). */
const PROMISED = LOCAL_BYTES + (PAGE_BYTES - 4) * 2 ** 30

test("a chain of overflow pages that leads in a circle ends, and its row is lost", () => {
  const [head, leaf, overflow] = [0, 1, 2].map(() => Buffer.alloc(PAGE_BYTES)) as Buffer[]
  if (!head || !leaf || !overflow) throw new Error("no pages")
  head.write("SQLite format 3\0")
  head.writeUInt16BE(PAGE_BYTES, 16)
  head.writeUInt32BE(3, 28)
  head[100] = 13
  leaf[0] = 13
  leaf.writeUInt16BE(1, 3)
  leaf.writeUInt16BE(100, 8)
  const cell = [...varint(PROMISED), ...varint(1), ...Buffer.alloc(LOCAL_BYTES, 1), 0, 0, 0, 3]
  Buffer.from(cell).copy(leaf, 100)
  overflow.fill(1)
  overflow.writeUInt32BE(3, 0)
  const path = join(leftover(mkdtempSync(join(tmpdir(), "belfry-circle-"))), "circle.db")
  writeFileSync(path, Buffer.concat([head, leaf, overflow]))
  const file = new DamagedFile(path)
  try {
    const page = file.btree(2)
    expect(page?.cells).toEqual([100])
    expect(page && [...file.rowsOf(2, page)]).toEqual([])
  } finally {
    file.close()
  }
})
