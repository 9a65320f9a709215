import { type Blobs, openBlobs } from "../../src/core/blobs"

/** Opened by their first use: most tests store no file, and 512 folders took a quarter of the time of a service. */
export function lateBlobs(dir: string): Blobs {
  let opened: Blobs | undefined
  const blobs = () => {
    opened ??= openBlobs(dir)
    return opened
  }
  return {
    get dir() {
      return blobs().dir
    },
    put: (...parts) => blobs().put(...parts),
    get: (sha256) => blobs().get(sha256),
    remove: (sha256) => blobs().remove(sha256),
    list: (folder) => blobs().list(folder),
    path: (sha256) => blobs().path(sha256),
  }
}
