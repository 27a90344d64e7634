sed -i '1,/^};/s/commande/réservation/g' src/messages.ts
