export type Texts = { readonly title: string; readonly ask: string; readonly done: string; readonly late: string };

export const order: Record<"en" | "fr" | "de", Texts> = {
  en: {
    title: "Your order",
    ask: "Cancel the order?",
    done: "The order “{name}” is cancelled!",
    late: "The order cannot be cancelled any more: it’s on its way.",
  },
  fr: {
    title: "Votre commande",
    ask: "Annuler la commande ?",
    done: "La commande « {name} » est annulée !",
    late: "La commande ne peut plus être annulée : elle est en route.",
  },
  de: {
    title: "Ihre Bestellung",
    ask: "Die Bestellung stornieren?",
    done: "Die Bestellung „{name}“ ist storniert!",
    late: "Die Bestellung kann nicht mehr storniert werden: Sie ist unterwegs.",
  },
};

export const invoice: Record<"en" | "fr" | "de", Texts> = {
  en: {
    title: "Invoice of your order",
    ask: "Cancel the order?",
    done: "The order “{name}” is cancelled!",
    late: "The order cannot be cancelled any more: it’s on its way.",
  },
  fr: {
    title: "Facture de votre commande",
    ask: "Annuler la commande ?",
    done: "La commande « {name} » est annulée !",
    late: "La commande ne peut plus être annulée : elle est en route.",
  },
  de: {
    title: "Rechnung zu Ihrer Bestellung",
    ask: "Die Bestellung stornieren?",
    done: "Die Bestellung „{name}“ ist storniert!",
    late: "Die Bestellung kann nicht mehr storniert werden: Sie ist unterwegs.",
  },
};
