import { expect, test } from "bun:test"
import { openBlobs } from "../../src/core/blobs"
import { BlobsElsewhere, requireSharedBlobs } from "../../src/operations/instance"
import { testStore } from "../harness/store"

test("a node whose blob folder is not that of the first one is refused", async () => {
  await using it = await testStore()
  const shared = () => openBlobs(`${it.folder}/shared`)
  await requireSharedBlobs(it.store, shared())
  await requireSharedBlobs(it.store, shared())

  const own = openBlobs(`${it.folder}/own`)
  const error = await requireSharedBlobs(it.store, own).catch((one: unknown) => one)
  expect(error).toBeInstanceOf(BlobsElsewhere)
  expect((error as Error).message).toContain("storage.blobs.dir")
})
