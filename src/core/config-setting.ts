import type { SettingKind } from "./config-kinds"

/** One setting: the values it takes, its default, and its meaning in one or two sentences. */
export interface SettingKey<V> {
  readonly kind: SettingKind<NonNullable<V>>
  readonly fallback: V
  readonly about: string
  /** Its value is never printed. */
  readonly secret: boolean
}

/** A setting with a default. */
export const key = <V>(kind: SettingKind<V>, fallback: V, about: string): SettingKey<V> =>
  ({ kind, fallback, about, secret: false }) as SettingKey<V>

/** A setting that may be missing. */
export const optional = <V>(
  kind: SettingKind<V>,
  about: string,
  secret = false,
): SettingKey<V | null> => ({ kind, fallback: null, about, secret }) as SettingKey<V | null>
