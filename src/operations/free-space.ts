import { statSync } from "node:fs"
import { statfs } from "node:fs/promises"
import { dirname } from "node:path"
import type { Settings } from "../core/config"
import { sqlitePath } from "../store/open"

const MB = 1024 * 1024

/** Bytes that are going to be written into a folder, which may not be there yet. */
export interface SpaceNeed {
  dir: string
  bytes: number
}

/**
 * What is missing where a disk would be full, or below the floor of a server whose data lie on it; undefined
 * where each disk has room. Needs of one disk are added up.
 */
export async function spaceFault(
  settings: Settings,
  needs: readonly SpaceNeed[],
  what: string,
): Promise<string | undefined> {
  const { data_dir, "storage.min_free_mb": min_free_mb } = settings
  const of_server = [data_dir, dirname(sqlitePath(settings))].map((dir) => diskOf(dir).id)
  for (const [id, { dir, bytes }] of needsByDisk(needs)) {
    const needed = bytes + (of_server.includes(id) ? min_free_mb * MB : 0)
    const { bavail, bsize } = await statfs(dir)
    const free = bavail * bsize
    if (free >= needed) continue
    const [has, needs] = [Math.floor(free / MB), Math.ceil(needed / MB)]
    return `${dir} has ${has} MB of free space, but ${what} needs ${needs} MB.`
  }
  return undefined
}

/** By the number of the device, each with the first folder that was named. */
function needsByDisk(needs: readonly SpaceNeed[]): Map<number, SpaceNeed> {
  const disks = new Map<number, SpaceNeed>()
  for (const { dir, bytes } of needs) {
    const { id, dir: there } = diskOf(dir)
    const known = disks.get(id)
    disks.set(id, { dir: known?.dir ?? there, bytes: (known?.bytes ?? 0) + bytes })
  }
  return disks
}

/** The disk on which a folder is, or would be. */
function diskOf(dir: string): { id: number; dir: string } {
  const found = statSync(dir, { throwIfNoEntry: false })
  if (found) return { id: found.dev, dir }
  const parent = dirname(dir)
  return parent === dir ? { id: statSync(dir).dev, dir } : diskOf(parent)
}
