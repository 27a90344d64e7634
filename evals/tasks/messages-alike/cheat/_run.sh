sed -i 's/commande/réservation/g' src/messages.ts
