"""Which column of a foreign file could be the users, the items, the ratings or the times, by the words in its name."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from verirec.data.roles import is_usual, log_roles
from verirec.exceptions import ColumnError

_WORDS: Final[dict[str, str]] = {
    "user": "user users usr u uid customer cust client member account viewer reader listener player subscriber visitor "
    "buyer shopper person people profile reviewer rater guest student "
    "nutzer nutzerin benutzer anwender kunde kunden kundin mitglied besucher leser kaufer konto "
    "utilisateur usager membre abonne acheteur lecteur visiteur compte "
    "usuario cliente miembro socio comprador lector visitante cuenta utente utilizador gebruiker klant",
    "item": "item items i iid product prod movie film video song track book isbn article sku ean upc gtin asin content "
    "show series episode game app listing offer document doc news story post page recipe restaurant place venue "
    "business hotel course wine vin reference ref beer dish joke anime artist album podcast "
    "artikel produkt buch lied ware angebot rezept spiel gegenstand "
    "produit objet livre chanson oeuvre jeu recette offre "
    "articulo producto pelicula libro cancion objeto juego receta oferta "
    "articolo prodotto brano canzone produto filme livro musica artigo",
    "rating": "rating ratings rate score scores stars star label vote votes grade mark points overall feedback "
    "response like liked likes thumb thumbs click clicked clicks purchase purchased bought played watched target y "
    "relevance preference satisfaction interest "
    "bewertung bewertungen note sterne punkte wertung gefallt gekauft geklickt beurteilung "
    "notation etoiles avis evaluation aime clic achat "
    "calificacion puntuacion valoracion nota estrellas puntos voto gusta "
    "valutazione punteggio stelle avaliacao classificacao pontuacao estrelas beoordeling sterren",
    "timestamp": "timestamp time times ts date datetime when created at day moment unixtime unix epoch "
    "zeit zeitpunkt zeitstempel datum tag uhrzeit wann heure horodatage quand fecha hora tiempo cuando data ora tijd",
}
"""English, German, French, Spanish, Italian, Portuguese and Dutch, without accents."""
_NAMING: Final = "id ids nr no num number nummer numero key code pk fk hash uuid idx index the of"
"""Words that say no more than that a column names something."""


_ROLES: Final = ("user", "item", "rating")


def guess_roles(names: Sequence[str], options: Mapping[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Guess the user, item and rating that a reader with these options would not find, and say so.

    Examples
    --------
    >>> for what, mend in guess_roles(["Kunden-Nr", "item", "Sterne"], {}):
    ...     print(what, mend)
    no column has a usual name of users: 'Kunden-Nr' seems to have them {'user': 'Kunden-Nr'}
    no column has a usual name of ratings: 'Sterne' seems to have them {'rating': 'Sterne'}
    """
    try:
        log_roles(options).settle([*names])
    except ColumnError:
        pass
    else:
        return
    guesses, taken = guess_columns(names), {value for value in options.values() if isinstance(value, str)}
    lacking = [role for role in _ROLES if options.get(role) is None and not _has_usual(role, names)]
    for role in lacking if options.get("clicks") is None else [role for role in lacking if role != "rating"]:
        found = [name for name in guesses[role] if name not in taken]
        if len(found) == 1:
            yield f"no column has a usual name of {role}s: {found[0]!r} seems to have them", {role: found[0]}
        elif role == "rating" and not found and all(guesses[side] for side in ("user", "item")):
            yield "no column says how a pair was liked: each row is taken for a click", {"clicks": True}


def _has_usual(role: str, names: Sequence[str]) -> bool:
    return sum(is_usual(role, name) for name in names) == 1


def guess_columns(names: Sequence[str]) -> dict[str, list[str]]:
    """Return the columns that could be each part, best ones only: those all of whose words are its, or else some.

    Examples
    --------
    >>> guess_columns(["Kunden-Nr", "Filmtitel", "film_id", "Sterne", "Datum", "Ort"])
    {'user': ['Kunden-Nr'], 'item': ['film_id'], 'rating': ['Sterne'], 'timestamp': ['Datum']}
    """
    words = {name: words_of(name) for name in names}
    found = {}
    for role, vocabulary in _WORDS.items():
        own = frozenset(vocabulary.split())
        whole = [name for name, said in words.items() if said and said <= own]
        found[role] = whole or [name for name, said in words.items() if said & own and not _is_other(said, role)]
    return found


def words_of(name: str) -> frozenset[str]:
    """Return the words of a column's name, without accents and those that every id has.

    Examples
    --------
    >>> sorted(words_of("idUsuário")), sorted(words_of("ProductSKU_no"))
    (['usuario'], ['product', 'sku'])
    """
    plain = "".join(one for one in unicodedata.normalize("NFKD", name) if not unicodedata.combining(one))
    parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", plain)
    said = {_without_id(part.lower()) for part in parts} - {*_NAMING.split()}
    return frozenset(said) or frozenset(part.lower() for part in parts)


def _without_id(word: str) -> str:
    """Take an ending such as "id" off a word that is known without it: userid, filmnr."""
    known = {one for vocabulary in _WORDS.values() for one in vocabulary.split()}
    for ending in ("id", "nr", "no", "nummer", "key", "code"):
        if word not in known and word.endswith(ending) and word.removesuffix(ending) in known:
            return word.removesuffix(ending)
    return word


def _is_other(said: frozenset[str], role: str) -> bool:
    """Whether words are of another part too; "rating_date" is a date."""
    others = (vocabulary for other, vocabulary in _WORDS.items() if other != role)
    return role != "timestamp" and any(said & frozenset(vocabulary.split()) for vocabulary in others)
