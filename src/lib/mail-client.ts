/** What a `User-Agent` says of a mail program or browser. Null is what it does not say. */
export interface MailClient {
  client: string | null
  os: string | null
  device: "desktop" | "mobile" | "tablet" | null
}

/** The first one that fits names the program: many name others behind themselves. */
const CLIENTS: readonly [RegExp, string][] = [
  [/GoogleImageProxy/i, "Gmail"],
  [/YahooMailProxy|YahooCacheSystem/i, "Yahoo Mail"],
  [/^Mozilla\/5\.0$/, "Apple Mail"], // its privacy protection tells no more
  [/Outlook-iOS|Outlook-Android|Microsoft Outlook|MSOffice|ms-office|\bOutlook\b/i, "Outlook"],
  [/Thunderbird/i, "Thunderbird"],
  [/Edg(?:e|A|iOS)?\//, "Edge"],
  [/OPR\/|Opera/, "Opera"],
  [/SamsungBrowser/, "Samsung Internet"],
  [/Firefox\/|FxiOS\//, "Firefox"],
  [/Chrome\/|CriOS\//, "Chrome"],
  [/Version\/[\d.]+.*Safari\//, "Safari"],
  [/(?:Macintosh|iPhone|iPad).*AppleWebKit/, "Apple Mail"],
  [/Android.*AppleWebKit/, "Android"],
]

const SYSTEMS: readonly [RegExp, string][] = [
  [/iPad/, "iPadOS"],
  [/iPhone|iPod|Outlook-iOS/, "iOS"],
  [/Android/, "Android"],
  [/CrOS/, "ChromeOS"],
  [/Windows/, "Windows"],
  [/Macintosh|Mac OS X/, "macOS"],
  [/Linux|X11/, "Linux"],
]

const DEVICES: Record<string, MailClient["device"]> = {
  iPadOS: "tablet",
  iOS: "mobile",
  ChromeOS: "desktop",
  Windows: "desktop",
  macOS: "desktop",
  Linux: "desktop",
}

/** Families, without versions. A proxy hides system and device of the reader. */
export function mailClientOf(user_agent: string | null): MailClient {
  const text = user_agent ?? ""
  const client = CLIENTS.find(([pattern]) => pattern.test(text))?.[1] ?? null
  if (isMailProxy(text)) return { client, os: null, device: null }
  const os = SYSTEMS.find(([pattern]) => pattern.test(text))?.[1] ?? null
  if (os === "Android") return { client, os, device: /Mobile/.test(text) ? "mobile" : "tablet" }
  return { client, os, device: os === null ? null : (DEVICES[os] ?? null) }
}

/** Proxies of mail services: they load pictures for readers, or before any reader looks. */
const PROXIES = /GoogleImageProxy|YahooMailProxy|YahooCacheSystem|^Mozilla\/5\.0$/i

/** Whether a mail service loads the picture in place of the reader. */
export const isMailProxy = (user_agent: string): boolean => PROXIES.test(user_agent)

/** Programs that follow every link: scanners of mail, makers of previews, crawlers. */
const SCANNERS =
  /bot\b|crawl|spider|scanner|preview|barracuda|proofpoint|mimecast|messagelabs|fireeye|trendmicro|symantec|facebookexternalhit|whatsapp|safebrowsing/i

/** Whether the program says that it is a scanner or a crawler. */
export const isScanner = (user_agent: string): boolean => SCANNERS.test(user_agent)
