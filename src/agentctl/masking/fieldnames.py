"""What fields are called, in several languages: words without case and separators.

A field counts by the end of its name: `billing_street_address` ends with a street address. Names that mean something
else elsewhere (`name`, `first`, `city`) count only inside an object that is a person or an address.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from agentctl.masking.words import listed
from agentctl.records.masking import MaskKind

PERSONS: Final = listed(
    """
    customer client user person passenger traveler traveller applicant coapplicant borrower guarantor patient guest
    visitor employee contact caller buyer purchaser shopper seller vendor owner holder cardholder
    accountholder policyholder tenant landlord member subscriber student doctor recipient receiver
    sender payee payer payor beneficiary claimant insured spouse partner father mother parent child guardian nominee
    billing shipping delivery consignee attendee participant candidate requester
    kunde kundin klient nutzer benutzer antragsteller inhaber empfänger empfaenger absender
    client cliente usuario usuaria pasajero titular destinatario remitente beneficiario solicitante huésped huesped
    utilisateur passager titulaire destinataire expéditeur expediteur bénéficiaire beneficiaire voyageur
    utente passeggero intestatario destinatário remetente usuário usuario passageiro hóspede hospede
    klant gebruiker reiziger klient pasażer użytkownik kund användare
    """
)
"""Objects that are a person; their plurals count too."""

_NAMES: Final = listed(
    """
    fullname legalname firstname lastname givenname familyname middlename maidenname surname forename nickname
    displayname preferredname personname realname birthname othername fathername mothername fathersname mothersname
    mothersmaidenname spousename nameoncard nameasperpan accountholder accountholdername cardholder cardholdername
    username screenname
    vorname nachname familienname geburtsname vollername kontoinhaber karteninhaber
    nombrecompleto primernombre segundonombre apellido apellidos apellidopaterno apellidomaterno
    prénom prenom nomdefamille nomcomplet nomdenaissance
    nomecompleto primeironome sobrenome apelido cognome nomecognome
    voornaam achternaam tussenvoegsel imię imie nazwisko imięinazwisko förnamn efternamn fornavn etternavn
    adsoyad soyad soyadı имя фамилия отчество фио 姓名 氏名 名前 お名前 姓 이름 성명 नाम पूरानाम
    """
)
_NAMES_IN_PERSON: Final = listed(
    "name names first last middle given family full nom nome nombre naam ad imię imie namn navn navn vollständigername"
)
_ADDRESSES: Final = listed(
    """
    address postaladdress streetaddress mailingaddress homeaddress billingaddress shippingaddress deliveryaddress
    permanentaddress residentialaddress currentaddress fulladdress addressline addressline1 addressline2 addressline3
    address1 address2 address3 addr addr1 addr2 line1street street street1 street2 streetname housenumber streetnumber
    apartmentnumber flatnumber postalcode postcode zipcode zip pincode plotnumber
    adresse anschrift straße strasse hausnummer plz postleitzahl
    dirección direccion calle domicilio códigopostal codigopostal
    rue codepostal adressepostale indirizzo cap
    endereço endereco rua cep logradouro morada
    adres straat postcode huisnummer ulica kodpocztowy adress gata postnummer
    адрес улица 住所 地址 주소 पता
    """
)
_ADDRESSES_IN_ADDRESS: Final = listed(
    """
    line lines line1 line2 line3 city town village locality suburb district county neighborhood neighbourhood landmark
    unit apartment apt flat building house number no full formatted text value raw street2 ort stadt ciudad ville città
    citta cidade bairro plaats miasto
    """
)
_BIRTH_DATES: Final = listed(
    """
    dob birthdate dateofbirth birthday birthdt borndate bornon born
    geburtsdatum geburtstag fechanacimiento fechadenacimiento datenaissance datedenaissance datadinascita
    datanascimento datadenascimento geboortedatum dataurodzenia födelsedatum fødselsdato датарождения 生年月日 出生日期
    """
)
_EMAILS: Final = listed(
    """
    email emails emailaddress emailaddresses emailid mail mailaddress contactemail correo correoelectronico courriel
    epost eposta 邮箱 メール इमेल ईमेल
    """
)
_PHONES: Final = listed(
    """
    phone phones phonenumber phonenumbers phoneno mobile mobiles mobilenumber mobileno mobilephone cell cellphone
    cellnumber tel telephone telephonenumber homephone workphone contactnumber contactno callback callbacknumber fax
    faxnumber whatsapp whatsappnumber msisdn callernumber callerid sms
    telefon telefonnummer handy handynummer mobilnummer teléfono telefono celular móvil movil numérodetéléphone
    téléphone portable telefone telemóvel telemovel cellulare telefoonnummer 电话 手机 電話番号 전화번호 फोन मोबाइल
    """
)
_CARDS: Final = listed(
    """
    cardnumber cardno creditcard creditcardnumber creditcardno debitcard debitcardnumber ccnumber ccnum
    primaryaccountnumber cardpan kartennummer kreditkarte númerodetarjeta numerodetarjeta numérodecarte
    numerocarta numerodocartao
    """
)
_CARD_CODES: Final = listed("cvv cvv2 cvc cvc2 cardcode cardsecuritycode")
_IBANS: Final = listed("iban ibannumber bankiban accountiban")
_NATIONAL_IDS: Final = listed(
    """
    ssn socialsecurity socialsecuritynumber socialsecurityno ssnlast4 nationalid nationalidnumber nationalidentifier
    governmentid idnumber idcardnumber identitynumber identitycard taxid taxidnumber taxidentificationnumber
    taxnumber tin
    itin passport passportnumber passportno driverslicense driverslicensenumber driverlicense driverlicensenumber
    drivinglicense drivinglicencenumber drivinglicensenumber licencenumber
    aadhaar aadhaarnumber aadhaarno aadhar aadharnumber aadharno uidai pannumber panno pancard pan voterid
    epic epicnumber
    gstin nino nationalinsurancenumber nhsnumber sin socialinsurancenumber medicarenumber medicareno tfn taxfilenumber
    cpf rg curp rfc dni nie nif nir numerosecu numérosécu codicefiscale idnr steuerid steueridnr steuernummer
    personalausweis ausweisnummer reisepass bsn burgerservicenummer personnummer cpr pesel rut cuit cuil nric fin rrn
    身份证 身份证号 マイナンバー 주민등록번호 आधार
    """
)
_IPS: Final = listed("ip ipaddress ipaddr clientip remoteip remoteaddr sourceip userip ipv4 ipv6")

BY_END: Final[Mapping[str, MaskKind]] = MappingProxyType(
    {
        **dict.fromkeys(_ADDRESSES, "address"),
        **dict.fromkeys(_NAMES, "name"),
        **dict.fromkeys(_BIRTH_DATES, "birth_date"),
        **dict.fromkeys(_PHONES, "phone"),
        **dict.fromkeys(_CARDS, "card"),
        **dict.fromkeys(_IBANS, "iban"),
        **dict.fromkeys(_NATIONAL_IDS, "national_id"),
        **dict.fromkeys(_EMAILS, "email"),
        **dict.fromkeys(_IPS, "ip"),
        **dict.fromkeys(_CARD_CODES, "other"),
    }
)
"""Names of fields, by what their values are."""

IN_PERSON: Final[Mapping[str, MaskKind]] = MappingProxyType(dict.fromkeys(_NAMES_IN_PERSON, "name"))
IN_ADDRESS: Final[Mapping[str, MaskKind]] = MappingProxyType(dict.fromkeys(_ADDRESSES_IN_ADDRESS, "address"))
IN_VALUE: Final = listed("value number raw formatted text primary secondary home work main other")
"""Fields inside a personal value's own object that hold the value itself."""
NEUTRAL: Final = listed(
    "profile details detail info data attributes personal personalinfo personaldetails identity args"
)
"""Objects inside a person's or an address's that are the same one still."""
LABELS_OF_NAMES: Final = listed("name nombre nom nome naam imię namn navn имя नाम 姓名 氏名")
"""Labels in a text that stand before a name, where what follows looks like one."""

IDENTIFIERS: Final = listed("id ids uuid guid uid ref reference hash digest checksum etag fingerprint sku slug cursor")
"""Last words of fields whose values are nobody's number: they stay, unless they hold an e-mail address or the like."""
STRUCTURE: Final = listed("type role lc index")
"""Keys whose values are parts of LangGraph's and LangChain's own forms."""
PLACEHOLDERS: Final = listed(
    "none null nil na n/a unknown undefined anonymous tbd todo test string str - -- ? *** redacted removed hidden"
)
"""Values of fields that say that there is none."""
