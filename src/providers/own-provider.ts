import type { Settings } from "../core/config"
import {
  findDescriptor,
  type OwnProvider,
  type ProviderDescriptor,
  type ProviderKind,
} from "./provider"

/** The instance's own provider of email, as the settings name it. */
export const ownEmailProvider = (
  table: readonly ProviderDescriptor[],
  settings: Settings,
): OwnProvider => ownProvider(table, settings, "email_provider", settings["delivery.provider"])

export function ownProvider(
  table: readonly ProviderDescriptor[],
  settings: Settings,
  kind: ProviderKind,
  name: string,
): OwnProvider {
  const descriptor = findDescriptor(table, kind, name)
  if (!descriptor?.fromSettings) throw new Error(`There is no provider ${name} for an instance.`)
  return { descriptor, credentials: descriptor.fromSettings(settings) }
}
