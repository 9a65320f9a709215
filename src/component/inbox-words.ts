const EN = {
  direction: "ltr" as "ltr" | "rtl",
  title: "Notifications",
  /** The name of the bell for screen readers. */
  bell: (unread: string) => `Notifications, unread: ${unread}`,
  show: "Show",
  filters: { all: "All", unread: "Unread", archived: "Archived", snoozed: "Snoozed" },
  all: "All",
  kinds: "Kinds of message",
  read_all: "Mark all as read",
  settings: "Settings",
  back: "Back",
  close: "Close",
  is_unread: "Unread",
  priorities: { high: "Important", urgent: "Urgent" },
  done: "Done",
  more: (title: string) => `More actions: ${title}`,
  mark_read: "Mark as read",
  mark_unread: "Mark as unread",
  archive: "Archive",
  unarchive: "Move out of the archive",
  snooze: { hour: "Snooze for an hour", day: "Snooze until tomorrow", week: "Snooze until Monday" },
  wake: "End the snooze",
  asleep: (time: string) => `Snoozed until ${time}`,
  remove: "Delete",
  load_more: "Show more",
  loading: "Loading…",
  empty: {
    all: "There are no messages yet.",
    unread: "You have read everything.",
    archived: "Nothing is archived.",
    snoozed: "Nothing is snoozed.",
  },
  offline: "You are offline. New messages come as soon as the connection is back.",
  polling: "New messages may come a little late.",
  ended: "Your session is over. Please sign in again.",
  failed: "That did not work. Please try again.",
  news: (title: string) => `New message: ${title}`,
  saved: "Your choice is saved.",
  channels: { email: "Email", push: "Push", sms: "SMS", in_app: "In the app" },
  ways: "How we reach you",
  categories: "Kinds of message",
  topics: "Topics",
}

/** The texts of the inbox in one language. */
export type InboxWords = typeof EN

const DE: InboxWords = {
  direction: "ltr",
  title: "Nachrichten",
  bell: (unread) => `Nachrichten, ungelesen: ${unread}`,
  show: "Anzeigen",
  filters: { all: "Alle", unread: "Ungelesen", archived: "Archiviert", snoozed: "Später" },
  all: "Alle",
  kinds: "Arten von Nachrichten",
  read_all: "Alle als gelesen markieren",
  settings: "Einstellungen",
  back: "Zurück",
  close: "Schließen",
  is_unread: "Ungelesen",
  priorities: { high: "Wichtig", urgent: "Dringend" },
  done: "Erledigt",
  more: (title) => `Weitere Aktionen: ${title}`,
  mark_read: "Als gelesen markieren",
  mark_unread: "Als ungelesen markieren",
  archive: "Archivieren",
  unarchive: "Aus dem Archiv holen",
  snooze: { hour: "In einer Stunde erinnern", day: "Morgen erinnern", week: "Am Montag erinnern" },
  wake: "Nicht mehr zurückstellen",
  asleep: (time) => `Zurückgestellt bis ${time}`,
  remove: "Löschen",
  load_more: "Mehr anzeigen",
  loading: "Wird geladen …",
  empty: {
    all: "Noch keine Nachrichten.",
    unread: "Sie haben alles gelesen.",
    archived: "Nichts ist archiviert.",
    snoozed: "Nichts ist zurückgestellt.",
  },
  offline: "Sie sind offline. Neue Nachrichten erscheinen, sobald die Verbindung wieder da ist.",
  polling: "Neue Nachrichten erscheinen eventuell etwas später.",
  ended: "Ihre Sitzung ist beendet. Bitte melden Sie sich wieder an.",
  failed: "Das hat nicht geklappt. Bitte versuchen Sie es noch einmal.",
  news: (title) => `Neue Nachricht: ${title}`,
  saved: "Ihre Auswahl ist gespeichert.",
  channels: { email: "E-Mail", push: "Push", sms: "SMS", in_app: "In der App" },
  ways: "Wie wir Sie erreichen",
  categories: "Arten von Nachrichten",
  topics: "Themen",
}

const FR: InboxWords = {
  direction: "ltr",
  title: "Notifications",
  bell: (unread) => `Notifications, non lues\u00a0: ${unread}`,
  show: "Afficher",
  filters: { all: "Toutes", unread: "Non lues", archived: "Archivées", snoozed: "En pause" },
  all: "Toutes",
  kinds: "Types de messages",
  read_all: "Tout marquer comme lu",
  settings: "Préférences",
  back: "Retour",
  close: "Fermer",
  is_unread: "Non lue",
  priorities: { high: "Important", urgent: "Urgent" },
  done: "Fait",
  more: (title) => `Autres actions\u00a0: ${title}`,
  mark_read: "Marquer comme lu",
  mark_unread: "Marquer comme non lu",
  archive: "Archiver",
  unarchive: "Sortir des archives",
  snooze: {
    hour: "Me le rappeler dans une heure",
    day: "Me le rappeler demain",
    week: "Me le rappeler lundi",
  },
  wake: "Annuler le rappel",
  asleep: (time) => `En pause jusqu’à ${time}`,
  remove: "Supprimer",
  load_more: "Afficher la suite",
  loading: "Chargement…",
  empty: {
    all: "Aucun message pour l’instant.",
    unread: "Vous avez tout lu.",
    archived: "Aucun message archivé.",
    snoozed: "Aucun message en pause.",
  },
  offline: "Vous êtes hors ligne. Les nouveaux messages arriveront dès le retour de la connexion.",
  polling: "Les nouveaux messages peuvent arriver avec un peu de retard.",
  ended: "Votre session est terminée. Veuillez vous reconnecter.",
  failed: "Cela n’a pas fonctionné. Veuillez réessayer.",
  news: (title) => `Nouveau message\u00a0: ${title}`,
  saved: "Votre choix est enregistré.",
  channels: { email: "E-mail", push: "Push", sms: "SMS", in_app: "Dans l’application" },
  ways: "Comment vous joindre",
  categories: "Types de messages",
  topics: "Sujets",
}

const ES: InboxWords = {
  direction: "ltr",
  title: "Mensajes",
  bell: (unread) => `Mensajes, sin leer: ${unread}`,
  show: "Mostrar",
  filters: { all: "Todas", unread: "Sin leer", archived: "Archivadas", snoozed: "Pospuestas" },
  all: "Todas",
  kinds: "Tipos de mensajes",
  read_all: "Marcar todo como leído",
  settings: "Preferencias",
  back: "Volver",
  close: "Cerrar",
  is_unread: "Sin leer",
  priorities: { high: "Importante", urgent: "Urgente" },
  done: "Hecho",
  more: (title) => `Más acciones: ${title}`,
  mark_read: "Marcar como leído",
  mark_unread: "Marcar como no leído",
  archive: "Archivar",
  unarchive: "Sacar del archivo",
  snooze: {
    hour: "Posponer una hora",
    day: "Posponer hasta mañana",
    week: "Posponer hasta el lunes",
  },
  wake: "No posponer más",
  asleep: (time) => `Pospuesto hasta ${time}`,
  remove: "Eliminar",
  load_more: "Mostrar más",
  loading: "Cargando…",
  empty: {
    all: "Todavía no hay mensajes.",
    unread: "Ya ha leído todo.",
    archived: "No hay nada archivado.",
    snoozed: "No hay nada pospuesto.",
  },
  offline: "Está sin conexión. Los mensajes nuevos llegarán en cuanto vuelva la conexión.",
  polling: "Los mensajes nuevos pueden llegar con un poco de retraso.",
  ended: "Su sesión ha terminado. Inicie sesión de nuevo.",
  failed: "No ha funcionado. Inténtelo de nuevo.",
  news: (title) => `Mensaje nuevo: ${title}`,
  saved: "Su elección se ha guardado.",
  channels: { email: "Correo", push: "Push", sms: "SMS", in_app: "En la aplicación" },
  ways: "Cómo le avisamos",
  categories: "Tipos de mensajes",
  topics: "Temas",
}

const AR: InboxWords = {
  direction: "rtl",
  title: "الإشعارات",
  bell: (unread) => `الإشعارات، غير المقروءة: ${unread}`,
  show: "عرض",
  filters: { all: "الكل", unread: "غير مقروءة", archived: "مؤرشفة", snoozed: "مؤجلة" },
  all: "الكل",
  kinds: "أنواع الرسائل",
  read_all: "تحديد الكل كمقروء",
  settings: "الإعدادات",
  back: "رجوع",
  close: "إغلاق",
  is_unread: "غير مقروءة",
  priorities: { high: "مهم", urgent: "عاجل" },
  done: "تم",
  more: (title) => `إجراءات أخرى: ${title}`,
  mark_read: "تحديد كمقروءة",
  mark_unread: "تحديد كغير مقروءة",
  archive: "أرشفة",
  unarchive: "إخراج من الأرشيف",
  snooze: { hour: "تأجيل لمدة ساعة", day: "تأجيل إلى الغد", week: "تأجيل إلى يوم الاثنين" },
  wake: "إنهاء التأجيل",
  asleep: (time) => `مؤجلة حتى ${time}`,
  remove: "حذف",
  load_more: "عرض المزيد",
  loading: "جارٍ التحميل…",
  empty: {
    all: "لا توجد رسائل بعد.",
    unread: "لقد قرأت كل شيء.",
    archived: "لا توجد رسائل مؤرشفة.",
    snoozed: "لا توجد رسائل مؤجلة.",
  },
  offline: "أنت غير متصل. ستصل الرسائل الجديدة فور عودة الاتصال.",
  polling: "قد تتأخر الرسائل الجديدة قليلًا.",
  ended: "انتهت جلستك. يرجى تسجيل الدخول مرة أخرى.",
  failed: "لم ينجح ذلك. يرجى المحاولة مرة أخرى.",
  news: (title) => `رسالة جديدة: ${title}`,
  saved: "تم حفظ اختيارك.",
  channels: {
    email: "البريد الإلكتروني",
    push: "الإشعارات الفورية",
    sms: "الرسائل النصية",
    in_app: "داخل التطبيق",
  },
  ways: "كيف نصل إليك",
  categories: "أنواع الرسائل",
  topics: "المواضيع",
}

export const INBOX_WORDS = { en: EN, de: DE, fr: FR, es: ES, ar: AR }

/** The texts of the first language that there is, and the tag in full: dates differ between `de` and `de-CH`. */
export function wordsFor(tags: readonly (string | null | undefined)[]): {
  words: InboxWords
  tag: string
} {
  for (const tag of tags) {
    const language = tag?.split("-", 1)[0]?.toLowerCase() ?? ""
    if (tag && isKnown(language) && isLocale(tag)) return { words: INBOX_WORDS[language], tag }
  }
  return { words: EN, tag: "en" }
}

const isKnown = (language: string): language is keyof typeof INBOX_WORDS =>
  Object.hasOwn(INBOX_WORDS, language)

/** A page may say anything in `lang`, and `Intl` throws for what is no tag. */
function isLocale(tag: string): boolean {
  try {
    return Intl.getCanonicalLocales(tag).length > 0
  } catch {
    return false
  }
}
