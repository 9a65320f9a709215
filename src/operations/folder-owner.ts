import { mkdirSync, statSync } from "node:fs"
import { hostname } from "node:os"
import { join } from "node:path"
import type { Settings } from "../core/config"
import { newId } from "../core/ids"
import { log } from "../core/log"
import { claimFile, readSmallFile, replaceFile, UnusableFile } from "../core/small-file"
import * as instanceValues from "../store/instance-values"
import type { Store } from "../store/store"
import { backupDir } from "./backup/backup-folder"
import { blobsDir } from "./restore/restore-target"

/** Names the instance in its data folder, and in each folder that no other instance may use. */
const OWNER_FILE = "belfry-instance"

/** The instance value on Postgres, because each node has a data folder of its own. */
export const INSTANCE_ID = "instance_id"

/** The settings that name folders whose old files an instance removes. */
type OwnFolder = "storage.blobs.dir" | "backup.dir"

type FolderSettings = Pick<Settings, "data_dir" | OwnFolder>

const folderOf = (settings: FolderSettings, name: OwnFolder): string =>
  name === "backup.dir" ? backupDir(settings) : blobsDir(settings)

/** Another instance uses the folder, and would remove files of this one. Nothing was changed. */
export class FolderOfAnother extends Error {
  override readonly name = "FolderOfAnother"

  constructor(dir: string, name: OwnFolder, place: string) {
    const of = place && ` (${place})`
    super(
      `${dir} belongs to another instance of Belfry${of}. Two instances remove files of each other. Give this one ` +
        `another folder in ${name}. If the other instance does not exist any more, remove ${join(dir, OWNER_FILE)}.`,
    )
  }
}

/**
 * Makes the folders of blobs and backups those of this instance, at the start of its server. On SQLite an
 * instance is its data folder, on Postgres its database with all nodes. Throws FolderOfAnother.
 */
export async function claimFolders(store: Store, settings: FolderSettings): Promise<void> {
  const { data_dir } = settings
  const here = ownerOf(data_dir)?.id ?? newId()
  const { isAlone, read } = store
  const known = isAlone ? undefined : await instanceValues.find(read, INSTANCE_ID)
  requireFolders(settings, known ?? here)
  const id = isAlone ? here : await instanceValues.findOrInitialize(store, INSTANCE_ID, here)
  if (ownerOf(data_dir)?.id !== id) write(data_dir, data_dir, id, replaceFile)
  if (ownerOf(data_dir)?.id !== id) return // the next start would not know its own folders
  mkdirSync(blobsDir(settings), { recursive: true, mode: 0o700 })
  claim(settings, "storage.blobs.dir", id)
  // The disk of the backups may be away at this moment: then the next backup claims it.
  if (statSync(backupDir(settings), { throwIfNoEntry: false })) claim(settings, "backup.dir", id)
}

/**
 * Throws FolderOfAnother for a folder that is not of the instance with this id. Default: of the one in the
 * data folder, which may be none yet.
 */
export function requireFolders(settings: FolderSettings, id = ownerOf(settings.data_dir)?.id) {
  for (const name of ["storage.blobs.dir", "backup.dir"] as const) requireFolder(settings, name, id)
}

/** Makes the folder of the backups the one of this data folder. Throws FolderOfAnother. */
export function claimBackups(settings: FolderSettings & Pick<Settings, "database_url">): void {
  const id = ownerOf(settings.data_dir)?.id
  if (id !== undefined) claim(settings, "backup.dir", id)
  // On Postgres it may be that of the other nodes: a server that starts here will know.
  else if (settings.database_url === null) requireFolder(settings, "backup.dir", id)
}

function claim(settings: FolderSettings, name: OwnFolder, id: string): void {
  const dir = folderOf(settings, name)
  if (!ownerOf(dir)) write(dir, settings.data_dir, id, claimFile)
  requireFolder(settings, name, id) // of two that claim at once, one wins
}

function requireFolder(settings: FolderSettings, name: OwnFolder, id: string | undefined): void {
  const dir = folderOf(settings, name)
  const owner = ownerOf(dir)
  if (owner && owner.id !== id) throw new FolderOfAnother(dir, name, owner.place)
}

interface FolderOwner {
  id: string
  /** Its data folder and its machine when it claimed the folder: for people. */
  place: string
}

const ID = /^[0-9a-f-]{36}$/

/** Undefined for a folder that is of no instance. Throws UnusableFile where nobody can tell. */
function ownerOf(dir: string): FolderOwner | undefined {
  const path = join(dir, OWNER_FILE)
  const text = readSmallFile(path, WITHOUT_OWNER)
  if (text === undefined) return undefined
  const [id = "", place = ""] = text.split("\n")
  if (!ID.test(id)) throw new UnusableFile(path, "names no instance", WITHOUT_OWNER)
  return { id, place }
}

const WITHOUT_OWNER =
  "It says which instance of Belfry uses the folder. The data folder, the folder of the attachments and that of the " +
  "backups each have one. Put one of the others in its place. If no other instance uses these folders, remove all."

/** A full disk must not keep the server from its start. */
function write(dir: string, data_dir: string, id: string, place: typeof claimFile): void {
  const path = join(dir, OWNER_FILE)
  try {
    place(path, `${id}\ndata folder ${data_dir} on ${hostname()}\n\n${FOR_PEOPLE}\n`)
  } catch (error) {
    log.warn("a folder could not be claimed", { path, error })
  }
}

const FOR_PEOPLE =
  "This folder belongs to the instance of Belfry above. No other instance may use it, because it would remove files of this one."
